"""Masks as pictures, one pixel a weight where there is room: a digit and its mask, sums over seeds, two draws."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Int8
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ssm.figures.style import MINUS, PLUS, SIGNS, WIDTH, in_style, new_figure

_LEFT, _RIGHT = 0.075, 0.005
# In inches: a title's lines, the room below a map for its axis, and between two maps.
_TOP, _FOOT, _GAP = 0.85, 0.65, 0.35


@in_style
def draw_digit_and_mask(digit: Float[np.ndarray, " inputs"], mask: Int8[np.ndarray, "inputs units"], *, title: str):
    """Draw an image as a row of pixels, a line each, above a first layer's mask, a row for each unit."""
    inputs, units = mask.shape
    wide = _width(inputs, WIDTH * (1 - _LEFT - _RIGHT))
    strip, tall = 1.1, min(max(1.5, wide * units / inputs), 5.0)
    figure = new_figure(_TOP + strip + _GAP + tall + _FOOT + 0.25, title=title, layout=None)
    top = _place(figure, _TOP, wide, strip)
    top.imshow(digit[None], aspect="auto", cmap="cividis", extent=(0, inputs, 0, 1))
    top.set(yticks=[], xticklabels=[])
    top.set_ylabel("digit")
    below = _place(figure, _TOP + strip + _GAP, wide, tall)
    _mask(below, mask)
    below.set(xlabel="input: pixel of the flattened image (line by line)", ylabel="hidden unit")
    figure.legend(handles=_sign_patches(), loc="upper right", ncols=3, bbox_to_anchor=(0.99, 1 - 0.42 / _high(figure)))
    return figure


@dataclass(frozen=True, kw_only=True)
class Sums:
    """The sum of absolute first-layer masks over runs, 0 to `runs`, and what is said beside it, line by line."""

    title: str
    sums: Int[np.ndarray, "inputs units"]
    runs: int
    notes: Sequence[str]


@in_style
def draw_sums(maps: Sequence[Sums], *, title: str) -> Figure:
    """Draw sums of absolute masks below each other, darker for more, each with the sum of every input and its notes."""
    inputs, units = maps[0].sums.shape
    wide = _width(inputs, WIDTH * (0.98 - _LEFT) - 1.9)
    tall = min(max(1.9, wide * units / inputs), 4.0)
    step = tall + 1.15
    figure = new_figure(_TOP + step * len(maps) + 0.05, title=title, layout=None)
    side = int(np.sqrt(inputs))
    for number, shown in enumerate(maps):
        top = _TOP + 0.2 + number * step
        axes = _place(figure, top, wide, tall)
        axes.imshow(
            shown.sums.T, aspect="auto", cmap="Greys", vmin=0, vmax=shown.runs, extent=(0, inputs, units, 0),
            interpolation="antialiased",
        )  # fmt: skip
        axes.set(title=shown.title, xlabel="input: pixel of the flattened image", ylabel="hidden unit")
        axes.grid(False)
        left = WIDTH * _LEFT + wide + 0.2
        if side * side == inputs:
            small = figure.add_axes(_box(figure, top, left, 1.45, 1.45))
            small.imshow(shown.sums.sum(1).reshape(side, side), cmap="Greys")
            small.set(xticks=[], yticks=[])
            small.set_title("sum of each pixel", fontsize=9)
        _, high = figure.get_size_inches()
        figure.text(
            left / WIDTH, 1 - (top + 1.55) / high, "\n".join(shown.notes), fontsize=8, va="top", linespacing=1.35
        )
    return figure


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A layer's masks of two seeds, as `sample_signs` gives them, and what is said of them."""

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
        for axes, mask, name in zip(part.subplots(1, 2, sharey=True), (pair.first, pair.second), pair.names, strict=True):
            axes.imshow(
                mask, aspect="auto", cmap=SIGNS, vmin=-1.5, vmax=1.5, extent=(0, pair.inputs, pair.units, 0)
            )
            axes.set(title=name, xlabel="input")
            axes.grid(False)
        part.axes[0].set_ylabel("unit")
    figure.legend(handles=_sign_patches(), loc="outside lower left", ncols=3)
    return figure


def sample_signs(mask: Int8[np.ndarray, "inputs units"], *, width: int, height: int) -> Int8[np.ndarray, "h w"]:
    """Shrink a layer's mask to at most height x width dots, units down and inputs across.

    A dot stands for the weights under it: the sign most of them have, whatever is hidden beside; 0 if all are.
    Of as many -1 as 1 it is the first one's.
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
    """Return the inches of a map: a pixel an input where that fits, so that no line is lost or blurred."""
    return inputs / 100 if 0.5 * room < inputs / 100 <= room else room


def _high(figure: Figure) -> float:
    return float(figure.get_size_inches()[1])


def _box(figure: Figure, top: float, left: float, wide: float, tall: float) -> tuple[float, float, float, float]:
    high = _high(figure)
    return left / WIDTH, 1 - (top + tall) / high, wide / WIDTH, tall / high


def _place(figure: Figure, top: float, wide: float, tall: float) -> Axes:
    return figure.add_axes(_box(figure, top, WIDTH * _LEFT, wide, tall))


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
