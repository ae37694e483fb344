"""The pictures of experiments/notebooks/mask_inspection.ipynb: what a net's pixels and units do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Int8, Real
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, Normalize, PowerNorm, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ssm.analysis import Moves
from ssm.viz.style import BLACK, BLUE, GREEN, LOOKS, MINUS, ORANGE, PLUS, SIGNS, SKY, ZERO, in_style, new_figure

_WEIGHTS = ListedColormap(["#542788", "#FFFFFF", GREEN], name="weights")
"""Colours of a weight's sign, different from a mask's, so that they are not mistaken for keep and invert."""
_BALANCE = LinearSegmentedColormap.from_list("balance", [MINUS, "#FFFFFF", PLUS])
_STATES = ListedColormap(["#FFFFFF", ORANGE, BLUE], name="states")
_MINUS = "−"  # noqa: RUF001
_SMALL = {"fontsize": 8.5}


@dataclass(frozen=True, kw_only=True)
class Image:
    """A number for each pixel: from 0 up, or `signed`, with 0 white; or a truth value, with true black.

    top: the darkest colour's value (default: the largest one).
    root: shades by the square root of the numbers, for when most are small.
    """

    title: str
    values: Real[np.ndarray, "h w"]
    signed: bool = False
    top: float | None = None
    root: bool = False


@in_style
def draw_images(images: Sequence[Image], *, title: str) -> Figure:
    """Draw images beside each other, each with a colour bar."""
    figure = new_figure(3.5, title=title)
    for axes, image in zip(figure.subplots(1, max(len(images), 3), squeeze=False)[0], images, strict=False):
        _image(axes, image)
        if image.values.dtype != bool:
            figure.colorbar(axes.images[0], ax=axes, shrink=0.75, pad=0.03)
    for axes in figure.axes[len(images) : max(len(images), 3)]:
        axes.set_axis_off()
    return figure


@in_style
def draw_signs(
    mask: Int8[np.ndarray, "units h w"],
    frozen: Int8[np.ndarray, "units h w"],
    *,
    names: Sequence[str],
    title: str,
) -> Figure:
    """Draw for some units the mask, the signs of the frozen weights, and the signs of the effective weights."""
    units = len(mask)
    figure = new_figure(5.4, title=title)
    axes = figure.subplots(3, max(units, 6), squeeze=False)
    rows = (("mask", mask, SIGNS), ("frozen weight", frozen, _WEIGHTS), ("effective weight", mask * frozen, _WEIGHTS))
    for row, (name, values, colours) in enumerate(rows):
        for column, axis in enumerate(axes[row]):
            if column >= units:
                axis.set_axis_off()
                continue
            axis.imshow(values[column], cmap=colours, vmin=-1.5, vmax=1.5)
            _frame(axis)
            if row == 0:
                axis.set_title(names[column], **_SMALL)
        axes[row, 0].set_ylabel(name)
    handles = [
        Patch(facecolor=PLUS, label="keep (+1)"),
        Patch(facecolor="white", edgecolor="0.5", label="hide (0)"),
        Patch(facecolor=MINUS, label=f"invert ({_MINUS}1)"),
        Patch(facecolor=_WEIGHTS(2), label="weight above 0"),
        Patch(facecolor=_WEIGHTS(0), label="weight below 0"),
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=5)
    return figure


@in_style
def draw_moves(moves: Mapping[str, Moves], *, title: str) -> Figure:
    """Draw a bar for each layer: how the initial mask's elements changed, in %, means over the seeds."""
    figure = new_figure(1.5 + 0.5 * len(moves), title=title)
    axes = figure.subplots()
    parts = (
        ("kept", "same sign", PLUS, ""),
        ("inverted", "other sign", MINUS, "////"),
        ("hidden", "hidden", ORANGE, "...."),
        ("revived", "from 0 to a sign", GREEN, "xx"),
        ("left_hidden", "0 throughout", ZERO, ""),
    )
    left = np.zeros(len(moves))
    for field, label, colour, hatch in parts:
        shares = 100 * np.array([np.mean(getattr(found, field)) for found in moves.values()])
        axes.barh(
            list(moves), shares, 0.7, left, color=colour, hatch=hatch, edgecolor="white", linewidth=0, label=label
        )
        left = left + shares
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.set(xlim=(0, 100), xlabel="share of the layer's elements (%)")
    figure.legend(loc="outside lower left", ncols=5)
    return figure


@in_style
def draw_states(used: Int[np.ndarray, "h w"], mean: Float[np.ndarray, "h w"], *, title: str) -> Figure:
    """Draw which pixels can have an influence (0 no weight, 1 weights without effect, 2 used), and the mean image."""
    figure = new_figure(3.4, title=title)
    left, right, _ = figure.subplots(1, 3)
    left.imshow(used, cmap=_STATES, vmin=-0.5, vmax=2.5)
    left.set_title("pixels of the net")
    _frame(left)
    _image(right, Image(title="mean of the test images", values=mean))
    figure.axes[2].set_axis_off()
    labels = ("no weight remains", "weights lead nowhere", "used")
    handles = [Patch(facecolor=_STATES(place), edgecolor="0.5", label=label) for place, label in enumerate(labels)]
    figure.axes[2].legend(handles=handles, loc="center left")
    return figure


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One layer that an image passes: its units' outputs, and their contributions to the winning logit."""

    name: str
    values: Float[np.ndarray, " units"]
    contributions: Float[np.ndarray, " units"]


@in_style
def draw_path(
    digit: Float[np.ndarray, "h w"],
    pixels: Float[np.ndarray, "h w"],
    stages: Sequence[Stage],
    logits: Float[np.ndarray, " classes"],
    *,
    class_names: Sequence[str],
    strongest: int = 12,
    title: str,
) -> Figure:
    """Draw an image, its activations in the hidden layers, and its logits."""
    figure = new_figure(3.3 + 2.1 * len(stages), title=title)
    parts = figure.subfigures(1 + len(stages), 1, squeeze=False, height_ratios=[3.0, *[2.1] * len(stages)])[:, 0]
    left, middle, right = parts[0].subplots(1, 3)
    _image(left, Image(title="the image, standardised", values=digit - digit.min()))
    _image(middle, Image(title="contribution of each pixel", values=pixels, signed=True))
    parts[0].colorbar(middle.images[0], ax=middle, shrink=0.75, pad=0.03)
    best = int(np.argmax(logits))
    colours = [PLUS if place == best else SKY for place in range(len(logits))]
    right.barh(range(len(logits)), logits, color=colours)
    right.set_yticks(range(len(logits)), class_names)
    right.invert_yaxis()
    right.grid(False, axis="y")
    right.set(title="logits", xlabel="logit")
    for part, stage in zip(parts[1:], stages, strict=True):
        _stage(part, stage, strongest)
    return figure


def _stage(part, stage: Stage, strongest: int) -> None:
    """Draw all activations of a layer as a sheet, and the strongest contributions as bars."""
    left, right = part.subplots(1, 2, width_ratios=[1, 1.15])
    units = len(stage.values)
    # Three times as wide as high, to fill the space.
    columns = max(1, min(units, int(np.ceil(np.sqrt(3 * units) / 10) * 10)))
    sheet = np.full(-(-units // columns) * columns, np.nan)
    sheet[:units] = stage.values
    _image(
        left, Image(title=f"{stage.name}: outputs of its {units} units", values=sheet.reshape(-1, columns), signed=True)
    )
    left.set_xlabel(f"unit, {columns} a row", **_SMALL)
    part.colorbar(left.images[0], ax=left, shrink=0.85, pad=0.02)
    order = np.argsort(-np.abs(stage.contributions))[:strongest]
    values = stage.contributions[order]
    bars = right.bar(range(len(order)), values, color=[PLUS if value > 0 else MINUS for value in values])
    for bar, value in zip(bars, values, strict=True):
        bar.set(hatch="" if value > 0 else "////", edgecolor="white", linewidth=0)
    right.axhline(0, color=BLACK, linewidth=0.8)
    right.set_xticks(range(len(order)), [str(unit) for unit in order], rotation=90)
    right.grid(False, axis="x")
    right.set(title="strongest contributions to the winning logit", xlabel="unit", ylabel="logit")


@in_style
def draw_scores(
    scores: Mapping[str, Float[np.ndarray, " shuffles"]], *, whole: float, guess: float, title: str
) -> Figure:
    """Draw a dot for each shuffle and a line for their mean, in %, beside the net's accuracy and a constant guess."""
    figure = new_figure(1.6 + 0.5 * len(scores), title=title)
    axes = figure.subplots()
    for place, values in enumerate(scores.values()):
        spread = np.linspace(-0.22, 0.22, len(values)) if len(values) > 1 else [0.0]
        axes.scatter(100 * values, place + np.asarray(spread), color=BLUE, s=22, alpha=0.7, linewidths=0, zorder=3)
        axes.plot([100 * values.mean()] * 2, [place - 0.32, place + 0.32], color=BLACK, linewidth=2, zorder=4)
    first, second = LOOKS[1], LOOKS[3]
    axes.axvline(100 * whole, color=first.colour, linestyle=first.line, label="as trained")
    axes.axvline(100 * guess, color=second.colour, linestyle=second.line, label="always the most frequent class")
    axes.scatter([], [], color=BLUE, s=22, label="one shuffle")
    axes.plot([], [], color=BLACK, linewidth=2, label="mean")
    axes.set_yticks(range(len(scores)), list(scores))
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.set(xlim=(0, 100), xlabel="test accuracy (%)", ylabel="shuffled")
    figure.legend(loc="outside lower left", ncols=4)
    return figure


def _image(axes: Axes, image: Image) -> None:
    values = image.values.astype(float)
    finite = np.abs(values[np.isfinite(values)])
    top = image.top if image.top is not None else float(finite.max(initial=0)) or 1.0
    norm: Normalize = TwoSlopeNorm(0, -top, top) if image.signed else Normalize(0, top)
    if image.root:
        norm = PowerNorm(0.5, 0, top)
    axes.imshow(values, cmap=_BALANCE if image.signed else "Greys", norm=norm)
    axes.set_title(image.title)
    _frame(axes)


def _frame(axes: Axes) -> None:
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("0.6")
