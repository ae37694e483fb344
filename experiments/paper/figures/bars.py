"""The paper's figures of the masks by layer: the shares of their values, and their equality over the seeds."""

from collections.abc import Callable, Sequence

from paper.figures.curves import Drawn, by_init
from paper.figures.selection import CNNS, FEEDFORWARD, Missing, Shelf, describe
from ssm.runs.reader import FinishedRun
from ssm.viz import labels
from ssm.viz.bars import RESNET, Agreement, Distribution, agreement, distribution, draw_agreements, draw_distributions

SHARES = "mean share of −1, 0 and +1 over the seeds"  # noqa: RUF001
EQUAL = "share of elements that are the same in the masks of all seeds"


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
    panels = [
        [_panel(shelf, _distribution, model, name, runs[name]) for name in names] for model, runs in found.items()
    ]
    absent = [f"{labels.MODELS[m]} {name}" for m, runs in found.items() for name in names if runs[name] is None]
    absent += [labels.MODELS[model] for model in FEEDFORWARD if model not in found]
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
            title = f"ResNet20{'' if width == 1 else f' x{width:g}'}, {labels.number([len(run.mask_seeds)], 'seed')}"
            panels.append([_distribution(shelf, run, title)])
    title = _title(f"ResNet20 signed Supermask: {SHARES}", used)
    absent = [f"x{width:g}" for width in (1, 1.5, 2, 2.5, 3) if not found.get(width)]
    return Drawn(draw_distributions(panels, title=title, xlabel=RESNET, height=2.6), used, absent)


def _by_model(shelf: Shelf, make: Callable, draw: Callable, masks: int, title: str) -> Drawn:
    found = {model: shelf.best(model=model, masks=masks) for model in CNNS}
    used = [run for run in found.values() if run]
    if not used:
        raise Missing(f"needs {describe(models=CNNS, method='signed', init='elus', masks=masks)}")
    panels = [_panel(shelf, make, model, "ELUS", run) for model, run in found.items() if run]
    rows = [panels[start : start + 2] for start in range(0, len(panels), 2)]
    absent = [labels.MODELS[model] for model, run in found.items() if not run]
    return Drawn(draw(rows, title=_title(title, used), height=3.1), used, absent)


def _by_init(shelf: Shelf, make: Callable, draw: Callable, masks: int, title: str) -> Drawn:
    found = {model: by_init(shelf, model, "signed", masks=masks) for model in FEEDFORWARD}
    used = [run for runs in found.values() for run in runs.values()]
    if not used:
        raise Missing(f"needs {describe(models=FEEDFORWARD, method='signed', init='any init', masks=masks)}")
    inits = [init for init in ("elus", "he", "xavier") if any(init in runs for runs in found.values())]
    panels = [
        [
            _panel(shelf, make, model, labels.initialisation(run, runs.values()), run)
            if (run := runs.get(init))
            else None
            for init in inits
        ]
        for model, runs in found.items()
        if runs
    ]
    absent = [
        labels.MODELS[model] if not runs else f"{labels.MODELS[model]} {labels.INITS[init]}"
        for model, runs in found.items()
        for init in (("elus", "he", "xavier") if runs else ("elus",))
        if init not in runs
    ]
    return Drawn(draw(panels, title=_title(title, used)), used, absent)


def _panel(shelf: Shelf, make: Callable, model: str, name: str, run: FinishedRun | None):
    if run is None:
        return None
    return make(shelf, run, f"{labels.MODELS[model]}, {name}, {labels.number([len(run.mask_seeds)], 'seed')}")


def _distribution(shelf: Shelf, run: FinishedRun, title: str) -> Distribution:
    return distribution(shelf.shares(run), title)


def _agreement(shelf: Shelf, run: FinishedRun, title: str) -> Agreement:
    return agreement(*shelf.equality(run), title)


def _title(text: str, used: Sequence[FinishedRun]) -> str:
    return f"{text}\n{labels.about(used, [len(run.mask_seeds) for run in used])}"
