"""The paper's figures of the masks: their shares by layer, their equality, and the masks themselves."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ssm.analysis import ALL, Shares, always_hidden, hidden_inputs, permutation_test
from ssm.data import DataError, Dataset, load
from ssm.figures import words
from ssm.figures.bars import Agreement, Distribution, draw_agreements, draw_distributions
from ssm.figures.choose import CNNS, FEEDFORWARD, Missing, Shelf, describe
from ssm.figures.maps import Draw, Sums, draw_digit_and_mask, draw_pairs, draw_sums, sample_signs
from ssm.figures.paper_curves import Drawn, by_init
from ssm.finished import FinishedRun

DIGIT = 8
"""The class of the image beside the first mask, as in the paper."""
SHARES = "mean share of −1, 0 and +1 over the seeds"  # noqa: RUF001
EQUAL = "share of elements that are the same in the masks of all seeds"
SHORTCUTS = "layer number: 0 the first convolution, (s) a 1 × 1 shortcut, the last one the output"  # noqa: RUF001

Panels = list[list]


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
        f"FCN signed Supermask: an image of class “{name}” as flattened pixels, and the first layer's mask of seed {seed}"
        f"\n{words.about([run], [1])}; test image {place} of {words.dataset(data.name)}; "
        f"{np.mean(mask != 0):.2%} of the layer's weights remain"
    )
    return Drawn(draw_digit_and_mask(digit, mask, title=title), [run], instead)


def first(masks: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the masks of a net's first layer."""
    return masks[words.ordered(masks)[0]]


def digits(run: FinishedRun, shelf: Shelf, inputs: int) -> tuple[Dataset, list[str]]:
    """Return the run's own data set, or that of 5,000 digits and why; `inputs` is what an image must have of pixels.

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


def conv_mask_dist(shelf: Shelf) -> Drawn:
    """Draw the average mask of each layer of the convolutional ELUS nets."""
    return _by_model(shelf, _distribution, draw_distributions, 1, f"CNN signed Supermask, ELUS: {SHARES}")


def conv_mask_eq(shelf: Shelf) -> Drawn:
    """Draw the equality of the convolutional ELUS nets' masks over the seeds."""
    return _by_model(shelf, _agreement, draw_agreements, 2, f"CNN signed Supermask, ELUS: {EQUAL}")


def all_mask_dist(shelf: Shelf) -> Drawn:
    """Draw the average mask of each layer, a row for each model, a column for each initialisation."""
    return _by_init(shelf, _distribution, draw_distributions, 1, f"Signed Supermask: {SHARES}")


def all_mask_eq(shelf: Shelf) -> Drawn:
    """Draw the equality of masks over the seeds, a row for each model, a column for each initialisation."""
    return _by_init(shelf, _agreement, draw_agreements, 2, f"Signed Supermask: {EQUAL}")


def all_schizo_mask_dist(shelf: Shelf) -> Drawn:
    """Draw the average mask of each layer of SiNN 1 and 2 beside ELUS, a row for each model."""
    found = {}
    for model in FEEDFORWARD:
        sinn = {f"SiNN {n}": shelf.best(model=model, sinn=f"sinn{n}", masks=1) for n in (1, 2)}
        if any(sinn.values()):
            found[model] = {"ELUS": shelf.best(model=model, masks=1), **sinn}
    if not found:
        raise Missing("needs a run with --preset=sinn1 or --preset=sinn2, and its masks")
    names = ("ELUS", "SiNN 1", "SiNN 2")
    panels = [[_panel(shelf, _distribution, model, name, runs[name]) for name in names] for model, runs in found.items()]
    absent = [f"{words.MODELS[m]} {name}" for m, runs in found.items() for name in names if runs[name] is None]
    absent += [words.MODELS[model] for model in FEEDFORWARD if model not in found]
    used = [run for runs in found.values() for run in runs.values() if run]
    return Drawn(draw_distributions(panels, title=_title(f"SiNN 1 and 2: {SHARES}", used)), used, absent)


def rn_mask_dist(shelf: Shelf) -> Drawn:
    """Draw the average mask of each layer of ResNet20 and its wider siblings."""
    widths = sorted({run.setting("width") for run in shelf.runs if run.setting("model") == "resnet20"})
    found = {width: shelf.best(model="resnet20", width=width, masks=1) for width in widths}
    used = [run for run in found.values() if run]
    if not used:
        raise Missing(f"needs {describe(models=['resnet20'], method='signed', init='elus', masks=1)}, of any width")
    panels = []
    for width, run in found.items():
        if run:
            title = f"ResNet20{'' if width == 1 else f' x{width:g}'}, {words.number([len(run.mask_seeds)], 'seed')}"
            panels.append([_distribution(shelf, run, title)])
    title = _title(f"ResNet20 signed Supermask: {SHARES}", used)
    absent = [f"x{width:g}" for width in (1, 1.5, 2, 2.5, 3) if not found.get(width)]
    return Drawn(draw_distributions(panels, title=title, xlabel=SHORTCUTS, height=2.6), used, absent)


def _by_model(shelf: Shelf, make: Callable, draw: Callable, masks: int, title: str) -> Drawn:
    found = {model: shelf.best(model=model, masks=masks) for model in CNNS}
    used = [run for run in found.values() if run]
    if not used:
        raise Missing(f"needs {describe(models=CNNS, method='signed', init='elus', masks=masks)}")
    panels = [_panel(shelf, make, model, "ELUS", run) for model, run in found.items() if run]
    rows = [panels[start : start + 2] for start in range(0, len(panels), 2)]
    absent = [words.MODELS[model] for model, run in found.items() if not run]
    return Drawn(draw(rows, title=_title(title, used), height=3.1), used, absent)


def _by_init(shelf: Shelf, make: Callable, draw: Callable, masks: int, title: str) -> Drawn:
    found = {model: by_init(shelf, model, "signed", masks=masks) for model in FEEDFORWARD}
    used = [run for runs in found.values() for run in runs.values()]
    if not used:
        raise Missing(f"needs {describe(models=FEEDFORWARD, method='signed', init='any init', masks=masks)}")
    inits = [init for init in ("elus", "he", "xavier") if any(init in runs for runs in found.values())]
    panels: Panels = [
        [_panel(shelf, make, model, words.INITS[init], runs.get(init)) for init in inits]
        for model, runs in found.items()
        if runs
    ]
    absent = [
        words.MODELS[model] if not runs else f"{words.MODELS[model]} {words.INITS[init]}"
        for model, runs in found.items()
        for init in (("elus", "he", "xavier") if runs else ("elus",))
        if init not in runs
    ]
    return Drawn(draw(panels, title=_title(title, used)), used, absent)


def _panel(shelf: Shelf, make: Callable, model: str, name: str, run: FinishedRun | None):
    if run is None:
        return None
    return make(shelf, run, f"{words.MODELS[model]}, {name}, {words.number([len(run.mask_seeds)], 'seed')}")


def _distribution(shelf: Shelf, run: FinishedRun, title: str) -> Distribution:
    return distribution(shelf.shares(run), title)


def distribution(found: Mapping[str, Shares], title: str) -> Distribution:
    """Return the mean shares by layer, in %, without those of all layers together."""
    layers = [layer for layer in found if layer != ALL]
    minus, zero, plus = (
        100 * np.asarray([np.mean(getattr(found[layer], key)) for layer in layers]) for key in Shares._fields
    )
    return Distribution(title=title, layers=names(layers), minus=minus, zero=zero, plus=plus)


def _agreement(shelf: Shelf, run: FinishedRun, title: str) -> Agreement:
    return agreement(*shelf.equality(run), title)


def agreement(signed: Mapping, absolute: Mapping, title: str) -> Agreement:
    """Return the shares of equal elements by layer, in %, without those of all layers together."""
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
    """Return what the layers are called below bars: by themselves, or in a ResNet by number as in the paper."""
    if not any(layer.startswith("Block") for layer in layers):
        return list(layers)
    projecting = {layer.split("/")[0] for layer in layers if layer.endswith("/Conv_2")}
    shortcuts = {f"{block}/Conv_0" for block in projecting}  # a block's third convolution comes first
    return [f"{number} (s)" if layer in shortcuts else f"{number}" for number, layer in enumerate(layers)]


# The paper's counts over 50 runs: inputs hidden in all, inputs of which at most 100 weights remain, and always hidden.
PAPER = {"signed": (284, 364, 54.11), "binary": (144, 260, 43.63)}
PAPER_RUNS, PAPER_MOST = 50, 100


def bin_mask_comparison(shelf: Shelf) -> Drawn:
    """Draw the sums of the FCN's absolute first masks, binary and signed, with the paper's counts beside ours."""
    runs = shelf.pair("method", ("binary", "signed"), model="fcn", init="elus", masks=1)
    if runs is None:
        raise Missing(
            "needs two FCN runs, elus, with masks, that differ in nothing but --method=binary and --method=signed"
        )
    count = min(len(run.mask_seeds) for run in runs)
    most = round(PAPER_MOST * count / PAPER_RUNS)
    maps = []
    for run in runs:
        mask = first(run.masks(run.mask_seeds[:count]))
        method = run.setting("method")
        inputs, some, hidden = PAPER[method]
        maps.append(
            Sums(
                title=f"{words.METHODS[method]}: number of the {count} runs in which a weight remains (darker: more)",
                sums=np.abs(mask).sum(0, dtype=np.int64),
                runs=count,
                notes=[
                    f"hidden inputs  {hidden_inputs(mask)}  (paper {inputs})",
                    f"  with at most {most}:  {hidden_inputs(mask, most=most)}  ({some})",
                    f"always hidden  {always_hidden(mask):.2%}  ({hidden:.2f} %)".replace("%  (", " %  ("),
                    f"remaining      {np.mean(mask != 0):.2%}".replace("%", " %"),
                ],
            )
        )
    title = (
        f"FCN: sums of absolute masks of the first layer, binary and signed Supermask, ELUS"
        f"\n{words.about(runs, [count])}; the paper's counts are of {PAPER_RUNS} runs, its outliers at most {PAPER_MOST}"
    )
    return Drawn(draw_sums(maps, title=title), runs)


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
        f"{kind} signed Supermask, ELUS: masks of the first dense layer of two seeds\n{words.about(used, [2])}; "
        "a dot is the sign that most weights under it have, if any remain"
    )
    absent = [words.MODELS[model] for model, run in found.items() if not run]
    return Drawn(draw_pairs(pairs, title=title), used, absent)


def _pair(run: FinishedRun) -> Draw:
    seeds = (run.mask_seeds[0], run.mask_seeds[1])
    masks = run.masks(seeds)
    layer = next(layer for layer in words.ordered(masks) if layer.startswith("Dense"))
    one, other = masks[layer]
    found = permutation_test(one, other)
    inputs, units = one.shape
    return Draw(
        title=f"{words.MODELS[run.setting('model')]}, {layer}, {inputs} × {units}: similarity of rows and columns "  # noqa: RUF001
        f"{found.similarity:.2f} (p {'=' if found.p > 0.001 else '≤'} {found.p:.3f} by permutation), "
        f"remaining {np.mean(one != 0):.2%} and {np.mean(other != 0):.2%}",
        first=sample_signs(one, width=420, height=230),
        second=sample_signs(other, width=420, height=230),
        names=(f"seed {seeds[0]}", f"seed {seeds[1]}"),
        inputs=inputs,
        units=units,
    )


def _title(text: str, used: Sequence[FinishedRun]) -> str:
    return f"{text}\n{words.about(used, [len(run.mask_seeds) for run in used])}"
