"""The paper's figures of accuracy and remaining weights, over epochs or at the end."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from paper.figures.selection import CNNS, FEEDFORWARD, INITS, Missing, Shelf, describe, rank
from ssm.runs.reader import FinishedRun
from ssm.viz import labels
from ssm.viz.curves import Finals, Line, Panel, draw_curves, draw_finals
from ssm.viz.style import LOOKS

ACCURACY, REMAINING = "test_accuracy", "remaining_weights"
UNITS = {ACCURACY: "test accuracy (%)", REMAINING: "remaining weights (%, log scale)"}
BANDS = "mean over the seeds, band from the 5 % to the 95 % quantile"
BARS = "mean over the seeds at the end, bars from the 5 % to the 95 % quantile"


class Drawn(NamedTuple):
    """A figure, the runs that it shows, and the parts of the paper's figure that it lacks."""

    figure: Figure
    runs: Sequence[FinishedRun]
    without: Sequence[str] = ()


def line(run: FinishedRun, figure: str, label: str, place: int) -> Line:
    """Return a run's curve of a figure, in %; `place` chooses its look."""
    rows = run.curve()
    mean, q05, q95 = (100 * np.asarray([row[f"{figure}:{key}"] for row in rows]) for key in ("mean", "q05", "q95"))
    epochs = np.asarray([row["epoch"] for row in rows], int)
    return Line(label=label, epochs=epochs, mean=mean, q05=q05, q95=q95, look=LOOKS[place % len(LOOKS)])


def panel(figure: str, title: str, runs: Sequence[tuple[str, FinishedRun]], places: Sequence[int]) -> Panel:
    """Return a panel with a line for each named run, labelled with its number of seeds."""
    lines = [
        line(run, figure, f"{name}, {labels.number([len(run.seeds)], 'seed')}", place)
        for (name, run), place in zip(runs, places, strict=True)
    ]
    return Panel(title=title, unit=UNITS[figure], lines=lines, log=figure == REMAINING)


def all_acc(shelf: Shelf) -> Drawn:
    """Draw test accuracy over epochs, baselines left and signed Supermasks right, a row for each model."""
    rows, used, without = [], [], []
    for model in FEEDFORWARD:
        row: list[Panel | None] = []
        for method in ("baseline", "signed"):
            found = by_init(shelf, model, method)
            name, how = labels.MODELS[model], labels.method(method)
            row.append(init_panel(ACCURACY, f"{name}, {how}", found) if found else None)
            used += found.values()
            without += [] if found else [f"{name} {how}"]
        if any(row):
            rows.append(row)
    if not used:
        raise Missing(f"needs {describe(models=FEEDFORWARD, method='signed', init='any init')}, or its baseline")
    return Drawn(
        draw_curves(rows, title=_title("Test accuracy of baselines and signed Supermasks", used)), used, without
    )


def fcn_sisu_one_ratio(shelf: Shelf) -> Drawn:
    """Draw the FCN's remaining weights over epochs, by initialisation."""
    return _one_ratio(shelf, ("fcn",))


def all_one_ratio(shelf: Shelf) -> Drawn:
    """Draw the convolutional nets' remaining weights over epochs, by initialisation."""
    return _one_ratio(shelf, CNNS)


def _one_ratio(shelf: Shelf, models: Sequence[str]) -> Drawn:
    found = {model: by_init(shelf, model, "signed") for model in models}
    panels = [init_panel(REMAINING, labels.MODELS[model], runs) for model, runs in found.items() if runs]
    if not panels:
        raise Missing(f"needs {describe(models=models, method='signed', init='any init')}")
    used = [run for runs in found.values() for run in runs.values()]
    title = _title("Signed Supermask: remaining weights during training", used)
    return Drawn(draw_curves(_two_columns(panels), title=title), used, _absent(found))


def rn_acc_oratio(shelf: Shelf) -> Drawn:
    """Draw accuracy and remaining weights of ResNet20 and its wider siblings over epochs."""
    widths = sorted({run.setting("width") for run in shelf.runs if run.setting("model") == "resnet20"})
    found = {width: shelf.best(model="resnet20", width=width) for width in widths}
    runs = [(f"ResNet20{'' if width == 1 else f' x{width:g}'}", run) for width, run in found.items() if run]
    if not runs:
        raise Missing(f"needs {describe(models=['resnet20'], method='signed', init='elus')}, of any width")
    absent = [f"x{width:g}" for width in (1, 1.5, 2, 2.5, 3) if not found.get(width)]
    return _both(runs, "ResNet20 signed Supermask by width", without=absent)


def fcn_acc_compare_wdist(shelf: Shelf) -> Drawn:
    """Draw the FCN's accuracy and remaining weights with signed constants and with uniform weights."""
    return _fcn_pair(shelf, *_WDIST, "FCN signed Supermask: distribution of the frozen weights")


def fcn_acc_compare_minit(shelf: Shelf) -> Drawn:
    """Draw the FCN's accuracy and remaining weights with ELUS and with Xavier scores."""
    return _fcn_pair(shelf, *_MINIT, "FCN signed Supermask: initialisation of the masks (weights/scores)")


def cnn_acc_compare_wdist(shelf: Shelf) -> Drawn:
    """Draw the convolutional nets' accuracy with signed constants and with uniform weights."""
    return _cnn_pairs(shelf, *_WDIST, ACCURACY, "CNN signed Supermask: distribution of the frozen weights")


def cnn_oratio_compare_wdist(shelf: Shelf) -> Drawn:
    """Draw the convolutional nets' remaining weights with signed constants and with uniform weights."""
    return _cnn_pairs(shelf, *_WDIST, REMAINING, "CNN signed Supermask: distribution of the frozen weights")


def cnn_acc_compare_minit(shelf: Shelf) -> Drawn:
    """Draw the convolutional nets' accuracy with ELUS and with Xavier scores."""
    return _cnn_pairs(shelf, *_MINIT, ACCURACY, "CNN signed Supermask: initialisation of the masks (weights/scores)")


def cnn_oratio_compare_minit(shelf: Shelf) -> Drawn:
    """Draw the convolutional nets' remaining weights with ELUS and with Xavier scores."""
    return _cnn_pairs(shelf, *_MINIT, REMAINING, "CNN signed Supermask: initialisation of the masks (weights/scores)")


# Setting, its two values, their labels, and the init of the runs.
_WDIST = "weight_distribution", ("signed_constant", "uniform"), ("He signed constants", "He uniform"), "he"
_MINIT = "score_scale", ("xavier", "elus"), ("ELUS/Xavier", "ELUS/ELUS"), "elus"


def _fcn_pair(shelf: Shelf, setting: str, values: Sequence[str], names: Sequence[str], init: str, title: str) -> Drawn:
    runs = shelf.pair(setting, values, model="fcn", method="signed", init=init)
    if runs is None:
        raise Missing(_needs_pair(["fcn"], init, setting, values))
    return _both(list(zip(names, runs, strict=True)), title)


def _cnn_pairs(
    shelf: Shelf, setting: str, values: Sequence[str], names: Sequence[str], init: str, figure: str, title: str
) -> Drawn:
    found = {model: shelf.pair(setting, values, model=model, method="signed", init=init) for model in CNNS}
    panels = [
        panel(figure, labels.MODELS[model], list(zip(names, runs, strict=True)), range(2))
        for model, runs in found.items()
        if runs
    ]
    if not panels:
        raise Missing(_needs_pair(CNNS, init, setting, values))
    used = [run for runs in found.values() if runs for run in runs]
    return Drawn(draw_curves(_two_columns(panels), title=_title(title, used)), used, _absent(found))


def fcn_schizo_oneratio(shelf: Shelf) -> Drawn:
    """Draw accuracy and remaining weights of the FCN's SiNN 1 and 2, beside ELUS, over epochs."""
    found = {name: shelf.best(model="fcn", sinn=sinn) for name, sinn in _SINN.items()}
    if not (found["SiNN 1"] or found["SiNN 2"]):
        raise Missing("needs a run of FCN with --preset=sinn1 or --preset=sinn2")
    runs = [(name, run) for name, run in found.items() if run]
    return _both(runs, "FCN: SiNN 1 and 2", without=_absent(found))


def all_schizo12_acc(shelf: Shelf) -> Drawn:
    """Draw accuracy and remaining weights of the convolutional SiNN 1 and 2 at the end."""
    runs = {name: {model: shelf.best(model=model, sinn=sinn) for model in CNNS} for name, sinn in _SINN.items() if sinn}
    return _finals(runs, runs, "Convolutional SiNN 1 and 2")


def cnn_sci_all_metrics(shelf: Shelf) -> Drawn:
    """Draw accuracy of the convolutional SiNN 2 beside baselines, and its remaining weights beside ELUS."""
    sinn = {model: shelf.best(model=model, sinn="sinn2") for model in CNNS}
    elus = {model: shelf.best(model=model) for model in CNNS}
    if not any(sinn.values()):
        raise Missing(_NEEDS_SINN.format("--preset=sinn2"))
    baselines = {
        f"baseline {labels.INITS[init]}": {
            model: shelf.best(model=model, method="baseline", init=init) for model in CNNS
        }
        for init in ("elu", "he", "xavier")
    }
    kept = {name: runs for name, runs in baselines.items() if any(runs.values())}
    left = {"SiNN 2": sinn, **kept}
    drawn = _finals(left, {"SiNN 2": sinn, "ELUS": elus}, "Convolutional SiNN 2, baselines and ELUS")
    return drawn._replace(without=[*drawn.without, *(name for name in baselines if name not in kept)])


_SINN = {"SiNN 1": "sinn1", "SiNN 2": "sinn2", "ELUS": ""}
_NEEDS_SINN = "needs a run of Conv2, Conv4, Conv6 or Conv8 with {}"


def _finals(accuracy: dict, remaining: dict, title: str) -> Drawn:
    groups = [*accuracy.items(), *remaining.items()]
    used = list({run.folder: run for _, runs in groups for run in runs.values() if run}.values())
    if not used:
        raise Missing(_NEEDS_SINN.format("--preset=sinn1 or --preset=sinn2"))
    models = [model for model in CNNS if any(runs[model] for _, runs in groups)]
    panels = [
        (name, unit, log, [_series(label, [runs[model] for model in models], figure) for label, runs in group.items()])
        for name, unit, log, figure, group in (
            ("Test accuracy", UNITS[ACCURACY], False, ACCURACY, accuracy),
            ("Remaining weights", UNITS[REMAINING], True, REMAINING, remaining),
        )
    ]
    names = [labels.MODELS[model] for model in models]
    without = dict.fromkeys(
        f"{labels.MODELS[model]} {label}" for label, runs in groups for model in CNNS if not runs[model]
    )
    return Drawn(draw_finals(panels, names, title=_title(title, used, BARS)), used, list(without))


def _series(label: str, runs: Sequence[FinishedRun | None], figure: str) -> Finals:
    mean, q05, q95 = (
        np.asarray([np.nan if run is None else 100 * run.summary[figure][key] for run in runs])
        for key in ("mean", "q05", "q95")
    )
    return Finals(label=label, mean=mean, q05=q05, q95=q95)


def by_init(shelf: Shelf, model: str, method: str, *, masks: int = 0) -> dict[str, FinishedRun]:
    """Return the runs that represent a model and method, by initialisation as Supermasks name it, on one data set."""
    found = {}
    for init in INITS:
        own = "elu" if (method, init) == ("baseline", "elus") else init
        if run := shelf.best(model=model, method=method, init=own, masks=masks):
            found[init] = run
    if not found:
        return {}
    data = max(found.values(), key=rank).setting("dataset")
    return {init: run for init, run in found.items() if run.setting("dataset") == data}


def init_panel(figure: str, title: str, runs: dict[str, FinishedRun]) -> Panel:
    """Return a panel with a line by initialisation, each with the same look in all figures."""
    named = [(labels.initialisation(run, runs.values()), run) for run in runs.values()]
    return panel(figure, title, named, [INITS.index(init) for init in runs])


def _both(runs: Sequence[tuple[str, FinishedRun]], title: str, *, without: Sequence[str] = ()) -> Drawn:
    used = [run for _, run in runs]
    panels = [
        panel(figure, name, runs, range(len(runs)))
        for figure, name in ((ACCURACY, "Test accuracy"), (REMAINING, "Remaining weights"))
    ]
    return Drawn(draw_curves([panels], title=_title(title, used), height=3.8), used, without)


def _two_columns(panels: Sequence[Panel]) -> list[list[Panel | None]]:
    return [list(panels[start : start + 2]) for start in range(0, len(panels), 2)]


def _title(text: str, used: Sequence[FinishedRun], how: str = BANDS) -> str:
    return f"{text}\n{labels.about(used)}; {how}"


def _absent(found: dict) -> list[str]:
    return [labels.MODELS.get(name, name) for name, runs in found.items() if not runs]


def _needs_pair(models: Sequence[str], init: str, setting: str, values: Sequence[str]) -> str:
    option = f"--{setting.replace('_', '-')}"
    two = " and ".join(f"{option}={value}" for value in values)
    wanted = describe(models=models, method="signed", init=init).removeprefix("a ")
    return f"needs two {wanted}, that differ in nothing but {two}".replace("Supermask run of", "Supermask runs of")
