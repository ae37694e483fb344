"""The choice of runs for the paper's figures."""

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from paper.tables.printed import WITHOUT_ROW
from ssm.analysis import Equality, Shares, by_layer, equality, shares
from ssm.errors import UserError
from ssm.recipes.presets import MODEL_DATA, PRESETS
from ssm.runs.reader import FinishedRun
from ssm.viz import labels

CNNS = ("conv2", "conv4", "conv6", "conv8")
FEEDFORWARD = ("fcn", *CNNS)
INITS = ("elus", "he", "xavier")

# Settings of the paper's main experiments, which a run that represents a model, method and init must have.
_PLAIN = {"width": 1.0, "projections": 1, "score_scale": "xavier"}


class Missing(Exception):
    """Raised with what a figure needs and the available runs lack."""


class Shelf:
    """The available runs, and values that several figures need, computed once."""

    def __init__(self, runs: Sequence[FinishedRun], *, data_dir: Path | None = None) -> None:
        self.runs = [run for run in runs if run.seeds]  # with a seed that did not fail
        self.data_dir = data_dir
        self._found: dict[tuple[str, Path], Any] = {}

    def of(self, folders: Collection[Path]) -> "Shelf":
        """Return the shelf with the runs in these folders alone; what was computed is kept."""
        part = copy(self)
        part.runs = [run for run in self.runs if run.folder in folders]
        return part

    def shares(self, run: FinishedRun) -> dict[str, Shares]:
        """Return a run's shares by layer, in the order of the net."""
        return self._once("shares", run, lambda: _sorted(shares(run.masks())))

    def equality(self, run: FinishedRun) -> tuple[dict[str, Equality], dict[str, Equality]]:
        """Return the equality of a run's masks by layer, signed and absolute, in the order of the net."""

        def found() -> tuple[dict[str, Equality], dict[str, Equality]]:
            masks = run.masks()
            return _sorted(by_layer(equality, masks)), _sorted(by_layer(equality, masks, absolute=True))

        return self._once("equality", run, found)

    def _once(self, kind: str, run: FinishedRun, compute: Callable[[], Any]) -> Any:
        key = kind, run.folder
        if key not in self._found:
            self._found[key] = compute()
        return self._found[key]

    def best(
        self, *, model: str, method: str = "signed", init: str = "elus", sinn: str = "", masks: int = 0, **other: Any
    ) -> FinishedRun | None:
        """Return the run that represents a model, method and init, or None.

        sinn: sinn1 or sinn2; otherwise these presets and `best` are excluded.  masks: number of seeds whose masks must
        exist.  other: settings that differ from the paper's main experiments.
        Of several, one on the model's own data set is preferred, then the most seeds, then the most epochs.
        """
        wanted = _PLAIN | {"model": model, "method": method, "init": init} | other

        def fits(run: FinishedRun) -> bool:
            preset = run.setting("preset")
            if (preset != sinn) if sinn else (preset in WITHOUT_ROW):
                return False
            usual = {"weight_distribution": "uniform" if method == "baseline" else "signed_constant"}
            usual["batch_norm"] = _batch_norm(model, method)
            return _is(run, usual | wanted) and (not masks or len(run.mask_seeds) >= masks)

        return max(filter(fits, self.runs), key=rank, default=None)

    def pair(self, setting: str, values: Sequence[Any], *, masks: int = 0, **fixed: Any) -> list[FinishedRun] | None:
        """Return runs with these values of a setting that differ in nothing else, or None; `fixed` as in `best`."""
        wanted = _PLAIN | fixed
        wanted.pop(setting, None)
        fitting = [
            run
            for run in self.runs
            if _is(run, wanted) and run.setting("preset") not in WITHOUT_ROW and len(run.mask_seeds) >= masks
        ]
        found = []
        for first in (run for run in fitting if run.setting(setting) == values[0]):
            group = [first]
            for value in values[1:]:
                same = [run for run in fitting if run.setting(setting) == value and _alike(first, run, setting)]
                group += sorted(same, key=rank)[-1:]
            if len(group) == len(values):
                found.append(group)
        return max(found, key=lambda group: min(map(rank, group)), default=None)


def describe(*, models: Iterable[str], method: str, init: str, masks: int = 0) -> str:
    """Return a description of what `Shelf.best` searched for."""
    names = [labels.MODELS[model] for model in models]
    kept = f", with masks of at least {labels.number([masks], 'seed')}" if masks else ""
    which = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
    return f"a {labels.method(method)} run of {which}, {init}{kept}"


def _batch_norm(model: str, method: str) -> str:
    if not model.startswith("resnet"):
        return "none"
    return "affine" if method == "baseline" else "frozen"


def _is(run: FinishedRun, wanted: dict[str, Any]) -> bool:
    return all(_value(run, name) == value for name, value in wanted.items())


def _value(run: FinishedRun, name: str) -> Any:
    try:
        return run.setting(name)
    except UserError:  # an older run without such a setting
        return None


def _alike(a: FinishedRun, b: FinishedRun, setting: str) -> bool:
    names = (set(a.config) | set(b.config)) - {setting}
    return all(_value(a, name) == _value(b, name) for name in names)


def rank(run: FinishedRun) -> tuple:
    """Return the key by which the best of several fitting runs is chosen: the largest."""
    own = MODEL_DATA[run.setting("model")][0] == run.setting("dataset").removeprefix("tfds:")
    preset = run.setting("preset")
    order = PRESETS.index(preset) if preset in PRESETS else len(PRESETS)
    return own, len(run.seeds), run.setting("epochs"), -order, run.name


def _sorted(found: dict[str, Any]) -> dict[str, Any]:
    return {layer: found[layer] for layer in labels.ordered(found)}
