"""The figures of a report as data URIs, each with an alternative text."""

import base64
from typing import NamedTuple

import numpy as np
from jaxtyping import Int8
from matplotlib.figure import Figure

from ssm.runs.reader import FinishedRun
from ssm.viz import labels
from ssm.viz.bars import RESNET, agreement, distribution, draw_agreements, draw_distributions
from ssm.viz.curves import Line, Panel, draw_curves
from ssm.viz.labels import Signs
from ssm.viz.maps import Sums, draw_sums, sample_signs
from ssm.viz.sections import Looked, Masks
from ssm.viz.style import LOOKS, to_png, to_svg
from ssm.viz.tiles import kernel_maps, mask_png, unit_maps

_UNITS, _COLUMNS = 400, 16
"""Most maps of units in a picture, and how many of them side by side."""
_MAP = {"width": 960, "height": 320}


class Picture(NamedTuple):
    """An image: its data URI, alternative text, caption, and whether it is a map of pixels."""

    uri: str
    alt: str
    caption: str
    pixels: bool = False


def colours(signs: Signs) -> str:
    """Return what the colours of a mask's picture mean."""
    minus = f"dark blue: {signs.minus} (−1); " if signs.minus else ""  # noqa: RUF001
    text = f"{minus}orange-red: {signs.plus} (+1); white: {signs.zero} (0)."
    return text[0].upper() + text[1:]


def curve_pictures(run: FinishedRun) -> list[Picture]:
    """Return the curves over epochs: accuracy, loss, and for masked nets remaining weights and flips."""
    rows = run.curve()
    epochs = np.asarray([row["epoch"] for row in rows], int)
    shown = [
        ("test_accuracy", "Test accuracy", "test accuracy (%)", 100),
        ("train_loss", "Training loss", "cross-entropy (nats)", 1),
    ]
    if run.is_masked:
        shown.insert(1, ("remaining_weights", "Remaining weights", "remaining weights (%, log scale)", 100))
        shown.append(("flips", "Changes of the mask", "elements changed (% per epoch)", 100))
    if "live_units:mean" in rows[0]:
        shown.append(("live_units", "Live units", "hidden units", 1))
    panels = []
    for name, title, unit, factor in shown:
        mean, q05, q95 = (factor * np.asarray([row[f"{name}:{key}"] for row in rows]) for key in ("mean", "q05", "q95"))
        line = Line(label="", epochs=epochs, mean=mean, q05=q05, q95=q95, look=LOOKS[0])
        log = name == "remaining_weights" and bool(np.all(mean > 0))
        panels.append(Panel(title=title, unit=unit, lines=[line], log=log))
    figure = draw_curves([panels[place : place + 2] for place in range(0, len(panels), 2)], title="", height=2.9)
    names = ", ".join(title.lower() for _, title, _, _ in shown)
    last = rows[-1]
    alt = (
        f"Curves over {len(rows)} epochs of {names}; at the end {100 * last['test_accuracy:mean']:.2f} % accuracy "
        f"and {100 * last['remaining_weights:mean']:.2f} % remaining weights."
    )
    seeds = len(run.seeds)
    caption = f"Mean over {seeds} seeds, bands from the 5 % to the 95 % quantile." if seeds > 1 else "One seed."
    return [_svg(figure, alt, caption)]


def layer_pictures(run: FinishedRun, looked: Looked) -> list[Picture]:
    """Return the shares by layer, and the equality of the masks where there are two or more."""
    count = labels.number([len(run.mask_seeds)], "seed")
    xlabel = RESNET if any(layer.startswith("Block") for layer in looked.shares) else "layer"
    panels = [[distribution(looked.shares, f"mean over {count}")]]
    signs = labels.signs(run.setting("method"))
    figure = draw_distributions(panels, title="", xlabel=xlabel, height=2.7, signs=signs)
    words = f"{signs.minus}, {signs.zero}" if signs.minus else signs.zero
    alt = f"Bars of the shares of {words} and {signs.plus} weights in each layer; the table below has the numbers."
    marks = "−1, 0" if signs.minus else "0"  # noqa: RUF001
    found = [_svg(figure, alt, f"Shares of {marks} and +1 by layer.")]
    if len(run.mask_seeds) > 1:
        figure = draw_agreements(
            [[agreement(looked.signed, looked.absolute, f"masks of {count}")]], title="", height=2.7
        )
        alt = "Bars of the share of elements that are equal in all masks, in each layer; the table has the numbers."
        found.append(_svg(figure, alt, "Equality of the masks of all seeds, beside chance."))
    return found


def mask_pictures(run: FinishedRun, masks: Masks) -> list[Picture]:
    """Return maps of the first layer, and of the first dense layer where that is a different one."""
    layers = labels.ordered(masks)
    first = masks[layers[0]]
    key = colours(labels.signs(run.setting("method")))
    found = [_first_layer(layers[0], first[0], run.mask_seeds[0], key)]
    if first.ndim == 3:
        found.append(_sums(layers[0], first))
    dense = next((layer for layer in layers if masks[layer].ndim == 3), None)
    if dense not in (None, layers[0]):
        for place in range(min(2, len(run.mask_seeds))):
            found.append(_dense(dense, masks[dense][place], run.mask_seeds[place], key))
    return found


def _first_layer(layer: str, mask: Int8[np.ndarray, "..."], seed: int, key: str) -> Picture:
    if mask.ndim == 4:
        height, width, inputs, outputs = mask.shape
        sheet = kernel_maps(mask)
        scale = max(1, min(8, _MAP["width"] // sheet.shape[1]))
        caption = (
            f"{layer}, seed {seed}: the mask of each {height} × {width} kernel, {outputs} outputs from left to right, "  # noqa: RUF001
            f"{inputs} input channels from top to bottom. {key}"
        )
        return _png(mask_png(sheet, scale=scale), f"Masks of the kernels of {layer} as small squares.", caption)
    inputs, units = mask.shape
    side = int(np.sqrt(inputs))
    if side * side != inputs:
        return _dense(layer, mask, seed, key)
    used = np.flatnonzero(mask.any(axis=0))[:_UNITS]
    sheet = unit_maps(mask[:, used], (side, side), columns=_COLUMNS)
    scale = max(1, _MAP["width"] // sheet.shape[1])
    which = f"the {len(used)} of {units} hidden units that have any weight left" if len(used) < units else "all units"
    if len(used) == _UNITS:
        which = f"the first {_UNITS} hidden units that have any weight left"
    caption = f"{layer}, seed {seed}: each hidden unit's weights on the {side} × {side} image; {which}. {key}"  # noqa: RUF001
    alt = f"{len(used)} small maps of {side} by {side} pixels, the incoming weights of one hidden unit each."
    return _png(mask_png(sheet, scale=scale), alt, caption)


def _dense(layer: str, mask: Int8[np.ndarray, "inputs units"], seed: int, key: str) -> Picture:
    dots = sample_signs(mask, **_MAP)
    scale = max(1, min(12, _MAP["width"] // dots.shape[1], _MAP["height"] // dots.shape[0]))
    inputs, units = mask.shape
    caption = f"{layer}, seed {seed}: {inputs} inputs from left to right, {units} units from top to bottom. {key}"
    if dots.size < mask.size:
        caption += " A dot is the sign that most weights under it have, if any remain."
    alt = f"Map of the mask of {layer}: {100 * np.mean(mask != 0):.2f} % of its weights remain."
    return _png(mask_png(dots, scale=scale), alt, caption)


def _sums(layer: str, mask: Int8[np.ndarray, "seeds inputs units"]) -> Picture:
    runs = len(mask)
    title = f"{layer}: number of the {runs} seeds in which a weight remains"
    figure = draw_sums([Sums(title=title, sums=np.abs(mask).sum(0, dtype=np.int64))], runs=runs, table=[], title="")
    alt = f"Map of the sum of absolute masks of {layer} over {runs} seeds, beside the sum of each input as an image."
    caption = f"{layer}: sum of absolute masks over {labels.number([runs], 'seed')}; darker: more."
    return Picture(_uri("png", to_png(figure)), alt, caption)


def _svg(figure: Figure, alt: str, caption: str) -> Picture:
    return Picture(_uri("svg+xml", to_svg(figure)), alt, caption)


def _png(data: bytes, alt: str, caption: str) -> Picture:
    return Picture(_uri("png", data), alt, caption, pixels=True)


def _uri(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
