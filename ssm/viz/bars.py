"""Bars by layer: the shares of a mask's -1, 0 and 1, and the equality of the masks of different seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssm.analysis import ALL, Shares
from ssm.viz.labels import INVERTING, Signs
from ssm.viz.style import BLACK, BLUE, MINUS, PLUS, SKY, ZERO, in_style, new_figure

# Adjacent panels keep their bars this far apart, so that the numbers above them can be read.
_ROW = 2.9

RESNET = (
    "layer: 0 the first convolution; p the 1 × 1 entry and s the 1 × 1 shortcut of a projection block; last: output"  # noqa: RUF001
)


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Mean shares of -1, 0 and 1 by layer, in %."""

    title: str
    layers: Sequence[str]
    minus: Float[np.ndarray, " layers"]
    zero: Float[np.ndarray, " layers"]
    plus: Float[np.ndarray, " layers"]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Share of elements equal in all masks, by layer, in %: signed and absolute, beside the expectation by chance."""

    title: str
    layers: Sequence[str]
    signed: Float[np.ndarray, " layers"]
    signed_chance: Float[np.ndarray, " layers"]
    absolute: Float[np.ndarray, " layers"]
    absolute_chance: Float[np.ndarray, " layers"]


def distribution(found: Mapping[str, Shares], title: str) -> Distribution:
    """Return the mean shares by layer, in %, without the total over all layers."""
    layers = [layer for layer in found if layer != ALL]
    minus, zero, plus = (
        100 * np.asarray([np.mean(getattr(found[layer], key)) for layer in layers]) for key in Shares._fields
    )
    return Distribution(title=title, layers=names(layers), minus=minus, zero=zero, plus=plus)


def agreement(signed: Mapping, absolute: Mapping, title: str) -> Agreement:
    """Return the shares of equal elements by layer, in %, without the total over all layers."""
    layers = [layer for layer in signed if layer != ALL]

    def of(found: Mapping, key: str) -> np.ndarray:
        return 100 * np.asarray([getattr(found[layer], key) for layer in layers])

    return Agreement(
        title=title,
        layers=names(layers),
        signed=of(signed, "same"),
        signed_chance=of(signed, "chance"),
        absolute=of(absolute, "same"),
        absolute_chance=of(absolute, "chance"),
    )


def names(layers: Sequence[str]) -> list[str]:
    """Return the layers' labels below bars: their names, or in a ResNet their numbers, with a mark on 1 x 1 layers.

    The paper numbers them, too, and calls 1, 8 and 15 shortcuts: in its program they are a block's first convolution.
    """
    if not any(layer.startswith("Block") for layer in layers):
        return list(layers)
    projecting = {layer.split("/")[0] for layer in layers if layer.endswith("/Conv_2")}
    kinds = {f"{block}/Conv_{number}": kind for block in projecting for number, kind in ((0, " p"), (2, " s"))}
    return [f"{number}{kinds.get(layer, '')}" for number, layer in enumerate(layers)]


@in_style
def draw_distributions(
    panels: Sequence[Sequence[Distribution | None]],
    *,
    title: str,
    xlabel: str = "layer",
    height: float = _ROW,
    signs: Signs = INVERTING,
) -> Figure:
    """Draw a bar for each layer, -1 below, 1 on top, and the remaining share above it as a number."""
    figure, axes = _grid(panels, title, height)
    for row, column, axis, panel in _each(panels, axes):
        x = np.arange(len(panel.layers))
        bottom = np.zeros(len(x))
        for word, mark, values, colour, hatch in (
            (signs.minus, "−1", panel.minus, MINUS, ""),  # noqa: RUF001
            (signs.zero, "0", panel.zero, ZERO, ""),
            (signs.plus, "+1", panel.plus, PLUS, "////"),
        ):
            if not word:
                continue
            label = f"{word} ({mark})"
            axis.bar(x, values, 0.8, bottom, color=colour, hatch=hatch, edgecolor="white", linewidth=0, label=label)
            bottom = bottom + values
        many = len(x) > 8
        for place, remaining in enumerate(panel.minus + panel.plus):
            _number(axis, place, 102, remaining, upright=many)
        axis.set(ylim=(0, 127 if many else 114), title=panel.title)
        _layers(axis, panel.layers, xlabel, last=row == len(panels) - 1)
        axis.set_ylabel("share of weights (%)" if column == 0 else "")
    _legend(figure, axes, extra="number above: remaining weights (%)")
    return figure


@in_style
def draw_agreements(
    panels: Sequence[Sequence[Agreement | None]], *, title: str, xlabel: str = "layer", height: float = _ROW
) -> Figure:
    """Draw two bars for each layer, signed and absolute, each with a black line at its expectation by chance."""
    figure, axes = _grid(panels, title, height)
    for row, column, axis, panel in _each(panels, axes):
        x = np.arange(len(panel.layers))
        for shift, label, values, chance, colour, hatch in (
            (-0.2, "masks (−1, 0, +1)", panel.signed, panel.signed_chance, BLUE, ""),  # noqa: RUF001
            (0.2, "absolute masks (0, 1)", panel.absolute, panel.absolute_chance, SKY, "////"),
        ):
            axis.bar(x + shift, values, 0.4, color=colour, hatch=hatch, edgecolor="white", linewidth=0, label=label)
            name = "by chance, at each layer's shares" if shift > 0 else None
            axis.hlines(chance, x + shift - 0.2, x + shift + 0.2, color=BLACK, linewidth=1.8, label=name)
            for place, value, line in zip(x, values, chance, strict=True):
                _number(axis, place + shift, max(value, line) + 2, value, upright=True)
        axis.set(ylim=(0, 127), title=panel.title)
        _layers(axis, panel.layers, xlabel, last=row == len(panels) - 1)
        axis.set_ylabel("equal in all masks (%)" if column == 0 else "")
    _legend(figure, axes, extra="number above: equal in all masks (%)")
    return figure


def _grid(panels: Sequence[Sequence[object]], title: str, height: float):
    rows, columns = len(panels), max(len(row) for row in panels)
    figure = new_figure(height * rows + 0.9, title=title)
    return figure, figure.subplots(rows, columns, squeeze=False, sharey="row")


def _each(panels, axes):
    """Yield every panel with its place and its axes, and hide axes without a panel."""
    for (row, column), axis in np.ndenumerate(axes):
        if column < len(panels[row]) and panels[row][column] is not None:
            yield row, column, axis, panels[row][column]
        else:
            axis.set_axis_off()


def _number(axis: Axes, x: float, y: float, value: float, *, upright: bool) -> None:
    text = f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"
    axis.text(x, y, text, ha="center", va="bottom", fontsize=7.5, rotation=90 if upright else 0)


def _layers(axis: Axes, layers: Sequence[str], xlabel: str, *, last: bool) -> None:
    axis.set_xticks(range(len(layers)), layers, rotation=90 if len(layers) > 3 and max(map(len, layers)) > 2 else 0)
    axis.set_xlim(-0.6, len(layers) - 0.4)
    axis.set_yticks(range(0, 101, 20))
    axis.grid(False, axis="x")
    if last:
        axis.set_xlabel(xlabel)


def _legend(figure: Figure, axes: np.ndarray, *, extra: str = "") -> None:
    """Put one legend for all panels at the bottom, where it covers none."""
    handles, labels = next((found for axis in axes.flat if (found := axis.get_legend_handles_labels())[0]), ([], []))
    figure.legend(handles, labels, loc="outside lower left", ncols=4, title=extra or None, alignment="left")
