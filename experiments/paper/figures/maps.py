"""The paper's figures that show masks themselves: beside a digit, summed over runs, and of two seeds."""

from collections.abc import Mapping, Sequence

import numpy as np

from paper.figures.curves import Drawn
from paper.figures.selection import CNNS, Missing, Shelf, describe
from paper.tables.masks import PAPER, PAPER_MOST, PAPER_RUNS
from ssm.analysis import always_hidden, hidden_inputs, permutation_test
from ssm.data import DataError, Dataset, load
from ssm.runs.reader import FinishedRun
from ssm.viz import labels
from ssm.viz.maps import Draw, Sums, draw_digit_and_mask, draw_pairs, draw_sums, sample_signs

DIGIT = 8
"""The class of the image beside the first mask, as in the paper."""


def fcn_mask_l0(shelf: Shelf) -> Drawn:
    """Draw a digit as flattened pixels above the first mask of one seed."""
    run = shelf.best(model="fcn", masks=1)
    if run is None:
        raise Missing(f"needs {describe(models=['fcn'], method='signed', init='elus', masks=1)}")
    seed = run.mask_seeds[0]
    mask = first(run.masks([seed]))[0]
    data, instead = digits(run, shelf, mask.shape[0])
    place = int(np.argmax(data.test_labels == DIGIT))
    digit = data.test_images[place].reshape(-1) / 255
    name = data.class_names[int(data.test_labels[place])]
    title = (
        f"FCN signed Supermask: an image of class “{name}” as flattened pixels, and the first mask of seed {seed}"
        f"\n{labels.about([run], [1])}; test image {place} of {labels.dataset(data.name)}; "
        f"{labels.percent(float(np.mean(mask != 0)))} of the layer's weights remain"
    )
    return Drawn(draw_digit_and_mask(digit, mask, title=title), [run], instead)


def first(masks: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the masks of a net's first layer."""
    return masks[labels.ordered(masks)[0]]


def digits(run: FinishedRun, shelf: Shelf, inputs: int) -> tuple[Dataset, list[str]]:
    """Return the run's own data set, or mnist5k and the reason; an image must have `inputs` numbers.

    Raises:
        Missing: if neither fits.
    """
    name = run.setting("dataset")
    try:
        data, instead = load("auto", data_dir=shelf.data_dir, preferred=name), []
    except DataError as error:
        data, instead = load("mnist5k"), [f"the run's own images ({error})"]
    if data.name != name and not instead:
        instead = [f"the run's own images: {data.source}"]
    if data.test_images[0].size != inputs:
        raise Missing(f"needs images of {inputs} numbers, as the run {run.name} had; {', '.join(instead) or data.name}")
    return data, instead


def bin_mask_comparison(shelf: Shelf) -> Drawn:
    """Draw the sums of the FCN's absolute first masks, binary and signed, with the paper's counts beside ours."""
    runs = shelf.pair("method", ("binary", "signed"), model="fcn", init="elus", masks=1)
    if runs is None:
        raise Missing(
            "needs two FCN runs, elus, with masks, that differ in nothing but --method=binary and --method=signed"
        )
    count = min(len(run.mask_seeds) for run in runs)
    most = round(PAPER_MOST * count / PAPER_RUNS)
    maps, ours = [], []
    for run in runs:
        mask = first(run.masks(run.mask_seeds[:count]))
        name = f"{labels.method(run.setting('method'))}: number of the {count} runs in which a weight remains"
        maps.append(Sums(title=name, sums=np.abs(mask).sum(0, dtype=np.int64)))
        remaining = labels.percent(float(np.mean(mask != 0)))
        found = hidden_inputs(mask), hidden_inputs(mask, most=most), labels.percent(always_hidden(mask)), remaining
        ours.append([str(value) for value in found])
    table = [
        [
            "first layer",
            f"inputs hidden in all {count} runs",
            f"inputs of which at most {most} weights remain in all runs together",
            f"weights hidden in all {count} runs",
            "remaining weights",
        ]
    ]
    comparable = all(run.setting("dataset").removeprefix("tfds:") == "mnist" for run in runs)
    for method, own in zip(("binary", "signed"), ours, strict=True):
        table.append([method, *own])
        if comparable:
            printed = PAPER[method]
            counts = [f"{printed[key]}" for key in ("hidden_inputs", "almost_hidden_inputs")]
            table.append(["paper's", *counts, f"{printed['always_hidden']:.2f} %", f"{printed['first_remaining']} %"])
    table = [list(row) for row in zip(*table, strict=True)]
    beside = f"; the paper's counts: {PAPER_RUNS} runs, second row at most {PAPER_MOST}" if comparable else ""
    title = (
        f"FCN: sums of absolute masks of the first layer, binary and signed Supermask, ELUS\n"
        f"{labels.about(runs, [count])}{beside}"
    )
    return Drawn(draw_sums(maps, runs=count, table=table, title=title), runs)


def conv_mask_comparison(shelf: Shelf) -> Drawn:
    """Draw the first dense layer's masks of two seeds of each convolutional net, with how similar they are."""
    return _pairs(shelf, CNNS, "CNN")


def fcn_mask_comparison(shelf: Shelf) -> Drawn:
    """Draw the first layer's masks of two seeds of the FCN, with how similar they are; the paper has no such figure."""
    return _pairs(shelf, ("fcn",), "FCN")


def _pairs(shelf: Shelf, models: Sequence[str], kind: str) -> Drawn:
    found = {model: shelf.best(model=model, masks=2) for model in models}
    used = [run for run in found.values() if run]
    if not used:
        raise Missing(f"needs {describe(models=models, method='signed', init='elus', masks=2)}")
    pairs = [_pair(run) for run in used]
    title = (
        f"{kind} signed Supermask, ELUS: masks of the first dense layer of two seeds\n{labels.about(used, [2])}; "
        "a dot is the sign that most weights under it have, if any remain"
    )
    absent = [labels.MODELS[model] for model, run in found.items() if not run]
    return Drawn(draw_pairs(pairs, title=title), used, absent)


def _pair(run: FinishedRun) -> Draw:
    seeds = (run.mask_seeds[0], run.mask_seeds[1])
    masks = run.masks(seeds)
    layer = next(layer for layer in labels.ordered(masks) if layer.startswith("Dense"))
    one, other = masks[layer]
    found = permutation_test(one, other)
    inputs, units = one.shape
    return Draw(
        title=f"{labels.MODELS[run.setting('model')]}, {layer}, {inputs} × {units}: similarity of rows and columns "  # noqa: RUF001
        f"{found.similarity:.2f} (p {'=' if found.p > 0.001 else '≤'} {found.p:.3f} by permutation), "
        f"remaining {labels.percent(float(np.mean(one != 0)))} and {labels.percent(float(np.mean(other != 0)))}",
        first=sample_signs(one, width=420, height=230),
        second=sample_signs(other, width=420, height=230),
        names=(f"seed {seeds[0]}", f"seed {seeds[1]}"),
        inputs=inputs,
        units=units,
    )
