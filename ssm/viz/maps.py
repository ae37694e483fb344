"""Masks as pictures, one pixel per weight where there is room: a digit and a mask, sums over seeds, pairs of seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Int8
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ssm.viz.style import MINUS, PLUS, SIGNS, WIDTH, in_style, new_figure

_LEFT = 0.07
_ROOM, _SMALL = 7.85, 1.15
"""Widths in inches of a map, 784 inputs at a pixel each, and of the small picture on its right."""
# In inches: a title's lines, the space below a map for its axis, and between two maps.
_TOP, _FOOT, _GAP = 0.85, 0.65, 0.35


@in_style
def draw_digit_and_mask(digit: Float[np.ndarray, " inputs"], mask: Int8[np.ndarray, "inputs units"], *, title: str):
    """Draw an image as a row of pixels, a line each, above a first layer's mask, a row for each unit."""
    inputs, units = mask.shape
    wide = _width(inputs, _ROOM)
    # Two pixels per unit, if there are not too many: single ones can hardly be distinguished.
    strip, tall = 1.1, min(max(1.5, units / 50), 6.0)
    figure = new_figure(_TOP + strip + _GAP + tall + _FOOT, title=title, layout=None)
    top = _place(figure, _TOP, wide, strip)
    top.imshow(digit[None], aspect="auto", cmap="Greys", extent=(0, inputs, 0, 1))
    top.grid(False)
    top.set(yticks=[], xticklabels=[])
    top.set_ylabel("digit")
    if (side := _side(inputs)) is not None:
        _picture(figure, _TOP, wide, digit.reshape(side, side), size=strip)
    below = _place(figure, _TOP + strip + _GAP, wide, tall)
    _mask(below, mask)
    below.set(xlabel="input: pixel of the flattened image (line by line)", ylabel="hidden unit")
    figure.legend(handles=_sign_patches(), loc="upper right", ncols=3, bbox_to_anchor=(0.99, 1 - 0.42 / _high(figure)))
    return figure


@dataclass(frozen=True, kw_only=True)
class Sums:
    """The sum of absolute first-layer masks over runs."""

    title: str
    sums: Int[np.ndarray, "inputs units"]


@in_style
def draw_sums(maps: Sequence[Sums], *, runs: int, table: Sequence[Sequence[str]], title: str) -> Figure:
    """Draw sums of absolute masks, 0 to `runs`, below each other, darker for more, and the sum of each input beside.

    table: rows of cells drawn below; the first row and column are names.
    """
    inputs, units = maps[0].sums.shape
    wide = _width(inputs, _ROOM)
    tall = min(max(1.9, wide * units / inputs), 4.0)
    step, start = tall + 1.0, _TOP if title else 0.2
    figure = new_figure(
        start + step * len(maps) + (0.21 * len(table) + 0.05 if table else -0.35), title=title, layout=None
    )
    side = _side(inputs)
    # The root of the count: most weights remain in few runs, and would be nearly white.
    scale = PowerNorm(0.5, vmin=0, vmax=runs)
    left = WIDTH * _LEFT + wide + 0.15
    for number, shown in enumerate(maps):
        top = start + 0.15 + number * step
        axes = _place(figure, top, wide, tall)
        shade = axes.imshow(shown.sums.T, aspect="auto", cmap="Greys", norm=scale, extent=(0, inputs, units, 0))
        axes.set(title=shown.title, xlabel="input: pixel of the flattened image (line by line)", ylabel="hidden unit")
        axes.grid(False)
        if side is not None:
            _picture(figure, top, wide, shown.sums.sum(1).reshape(side, side)).set_title("sum of each pixel")
        place = figure.add_axes(_box(figure, top + tall - 0.55, left, _SMALL, 0.14))
        bar = figure.colorbar(shade, cax=place, orientation="horizontal", label="runs")
        bar.set_ticks([0, runs] if runs < 4 else [0, runs // 10 or 1, runs // 2, runs])
    for number, cells in enumerate(table):
        height = 1 - (start + step * len(maps) + 0.05 + 0.21 * number) / _high(figure)
        figure.text(_LEFT, height, cells[0], fontsize=9.5, weight="bold" if number == 0 else "normal")
        for place, cell in enumerate(cells[1:]):
            bold = "bold" if number == 0 else "normal"
            figure.text(0.60 + 0.1 * place, height, cell, fontsize=9.5, ha="right", weight=bold)
    return figure


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A layer's masks of two seeds, as `sample_signs` returns them, and the panel's title and names."""

    title: str
    first: Int8[np.ndarray, "h w"]
    second: Int8[np.ndarray, "h w"]
    names: tuple[str, str]
    inputs: int
    units: int


@in_style
def draw_pairs(pairs: Sequence[Draw], *, title: str) -> Figure:
    """Draw two seeds' masks of one layer beside each other, a row for each model."""
    figure = new_figure(3.3 * len(pairs) + 0.9, title=title)
    parts = figure.subfigures(len(pairs), 1, squeeze=False)[:, 0]
    for part, pair in zip(parts, pairs, strict=True):
        part.suptitle(pair.title, x=0.01, ha="left", fontsize=10)
        for axes, mask, name in zip(
            part.subplots(1, 2, sharey=True), (pair.first, pair.second), pair.names, strict=True
        ):
            axes.imshow(mask, aspect="auto", cmap=SIGNS, vmin=-1.5, vmax=1.5, extent=(0, pair.inputs, pair.units, 0))
            axes.set(title=name, xlabel="input")
            axes.grid(False)
        part.axes[0].set_ylabel("unit")
    figure.legend(handles=_sign_patches(), loc="outside lower left", ncols=3)
    return figure


def sample_signs(mask: Int8[np.ndarray, "inputs units"], *, width: int, height: int) -> Int8[np.ndarray, "h w"]:
    """Shrink a layer's mask to at most height x width dots, units down and inputs across.

    A dot stands for the weights under it: the sign of most of the remaining ones, or 0 if all are hidden.
    Ties between -1 and 1 alternate from dot to dot.
    """
    across = np.linspace(0, mask.shape[0], min(width, mask.shape[0]) + 1).astype(int)[:-1]
    down = np.linspace(0, mask.shape[1], min(height, mask.shape[1]) + 1).astype(int)[:-1]

    def under(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.add.reduceat(values, across, axis=0), down, axis=1).T

    plus, minus = under((mask > 0).astype(np.int32)), under((mask < 0).astype(np.int32))
    tie = np.where((np.arange(plus.size).reshape(plus.shape) % 2) == 0, 1, -1)  # neither sign is preferred
    found = np.where(plus == minus, np.where(plus > 0, tie, 0), np.sign(plus - minus))
    return found.astype(np.int8)


def _width(inputs: int, room: float) -> float:
    """Return the width of a map in inches: a pixel per input where that fits, so that no line is lost or blurred."""
    return inputs / 100 if 0.5 * room < inputs / 100 <= room else room


def _high(figure: Figure) -> float:
    return float(figure.get_size_inches()[1])


def _box(figure: Figure, top: float, left: float, wide: float, tall: float) -> tuple[float, float, float, float]:
    high = _high(figure)
    return left / WIDTH, 1 - (top + tall) / high, wide / WIDTH, tall / high


def _place(figure: Figure, top: float, wide: float, tall: float) -> Axes:
    return figure.add_axes(_box(figure, top, WIDTH * _LEFT, wide, tall))


def _side(inputs: int) -> int | None:
    """Return the side of the square image with so many inputs, or None."""
    side = int(np.sqrt(inputs))
    return side if side * side == inputs else None


def _picture(figure: Figure, top: float, wide: float, image: np.ndarray, *, size: float = _SMALL) -> Axes:
    """Draw a small picture on the right of a map."""
    axes = figure.add_axes(_box(figure, top, WIDTH * _LEFT + wide + 0.15, size, size))
    axes.imshow(image, cmap="Greys")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    return axes


def _mask(axes: Axes, mask: Int8[np.ndarray, "inputs units"]) -> None:
    inputs, units = mask.shape
    axes.imshow(mask.T, aspect="auto", cmap=SIGNS, vmin=-1.5, vmax=1.5, extent=(0, inputs, units, 0))
    axes.grid(False)


def _sign_patches() -> list[Patch]:
    return [
        Patch(facecolor=MINUS, label="inverted (−1)"),  # noqa: RUF001
        Patch(facecolor="white", edgecolor="0.5", label="hidden (0)"),
        Patch(facecolor=PLUS, label="kept (+1)"),
    ]
