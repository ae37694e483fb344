"""A seed that was trained again, beside the one of a finished run: what is the same, and what may explain the rest."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ssm.errors import UserError
from ssm.runs.folder import mask_path
from ssm.runs.history import Row, read_history
from ssm.runs.mask_file import load_masks
from ssm.runs.reader import FinishedRun, spans
from ssm.runs.value_file import load_values, value_path
from ssm.runs.weight_file import load_weights, weight_path

_OF_THE_DATA = ("data", "image_shape", "inputs", "class_names")


class Differing(NamedTuple):
    """How many of a layer's mask elements differ, and of how many."""

    count: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What two trainings of one seed have in common; pairs are (then, now), shares 0..1.

    masks: by layer; None if one of the two has none.
    values: whether scales, offsets and batch statistics are the same bits; None if one of the two has none.
    weights: whether the weights of a method of the related work are; None if one of the two keeps none.
    epoch: the first one whose figures differ; None if none does.
    epochs: how many were compared; 0 if one of the two has no history.
    """

    accuracy: tuple[float, float]
    remaining: tuple[float, float]
    masks: dict[str, Differing] | None
    values: bool | None
    weights: bool | None
    epoch: int | None
    epochs: int

    @property
    def same(self) -> bool:
        """Whether all that both have is the same, bit for bit."""
        figures = _equal(*self.accuracy) and _equal(*self.remaining)
        masks = not any(layer.count for layer in (self.masks or {}).values())
        kept = self.values is not False and self.weights is not False
        return figures and masks and kept and self.epoch is None


def check_seed(run: FinishedRun, seed: int) -> None:
    """Raise UserError unless a run has a result of the seed."""
    if seed in run.seeds:
        return
    for entry in run.summary["failed"]:
        if entry["seed"] == seed:
            why = entry.get("reason") or "it turned non-finite"
            raise UserError(
                f"seed {seed} of {run.folder} was excluded in epoch {entry['epoch']} ({why}): it has no result to compare"
            )
    raise UserError(f"{run.folder} has no seed {seed}; it has {spans(run.seeds) or 'none'}")


def environment_of(run: FinishedRun, seed: int) -> dict[str, Any]:
    """Return what a run recorded of the program and the machine that trained a seed; nothing if it recorded nothing.

    Raises:
        UserError: naming the file, if it is damaged.
    """
    return next((environment for seeds, environment in run.environments() if seed in seeds), {})


def check_same_data(run: FinishedRun, then: Mapping[str, Any], fingerprint: str, source: str) -> None:
    """Raise UserError if a seed was trained on other data than what was loaded; old runs don't say on what."""
    if then.get("data", fingerprint) != fingerprint:
        raise UserError(
            f"{run.folder} was trained on other data of the same name: its fingerprint is {then['data']}, that of {source} "
            f"is {fingerprint}; name the folder of the run's own files with --data-dir"
        )


def compare(then: FinishedRun, now: FinishedRun, seed: int) -> Comparison:
    """Return what a seed of one run and the same seed of another, trained again, have in common.

    Raises:
        UserError: if a file is damaged, or the masks are of other layers.
    """
    accuracy, remaining = (_figures(then, now, name, seed) for name in ("test_accuracy", "remaining_weights"))
    epoch, epochs = _histories(_history(then, seed), _history(now, seed))
    return Comparison(
        accuracy=accuracy,
        remaining=remaining,
        masks=_masks(then, now, seed),
        values=_same(then, now, value_path, load_values, seed),
        weights=_same(then, now, weight_path, load_weights, seed),
        epoch=epoch,
        epochs=epochs,
    )


def _figures(then: FinishedRun, now: FinishedRun, name: str, seed: int) -> tuple[float, float]:
    return then.summary[name]["values"][str(seed)], now.summary[name]["values"][str(seed)]


def _masks(then: FinishedRun, now: FinishedRun, seed: int) -> dict[str, Differing] | None:
    if seed not in then.mask_seeds or seed not in now.mask_seeds:
        return None
    one, other = (load_masks(mask_path(run.folder, seed)) for run in (then, now))
    if {layer: mask.shape for layer, mask in one.items()} != {layer: mask.shape for layer, mask in other.items()}:
        raise UserError(
            f"{mask_path(then.folder, seed)} has other layers than the net that its config.json describes: it is damaged, "
            "or of another version's net"
        )
    return {layer: Differing(int(np.sum(mask != other[layer])), mask.size) for layer, mask in one.items()}


def _same(then: FinishedRun, now: FinishedRun, place: Callable, load: Callable, seed: int) -> bool | None:
    """Return whether the arrays of two files are the same bits; None if one of them is not there."""
    paths = [place(run.folder, seed) for run in (then, now)]
    if not all(path.exists() for path in paths):
        return None
    one, other = map(load, paths)
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)


def _history(run: FinishedRun, seed: int) -> list[Row]:
    path = run.folder / "history.csv"
    return [row for row in read_history(path) if row["seed"] == seed] if path.exists() else []


def _histories(then: list[Row], now: list[Row]) -> tuple[int | None, int]:
    """Return the first epoch in which what both versions record differs, and the number of epochs that were compared."""
    if not then or not now:
        return None, 0
    names = (then[0].keys() & now[0].keys()) - {"seconds"}
    for number, (one, other) in enumerate(zip(then, now, strict=False), 1):
        if not all(_equal(one[name], other[name]) for name in names):
            return int(one["epoch"]), number
    shorter, longer = sorted((len(then), len(now)))
    return (None if shorter == longer else shorter + 1), shorter


def _equal(one: float | str, other: float | str) -> bool:
    """Return whether two figures are the same: those of earlier versions, accuracies above all, were float32."""
    return one == other or (not isinstance(one, str) and np.float32(one) == np.float32(other))


def environment_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each thing that differs in program and machine, and one for what was not recorded then."""
    names = [name for name in now if name not in _OF_THE_DATA]
    lines = [f"{name}: {then[name]} then, {now[name]} now" for name in names if name in then and then[name] != now[name]]
    missing = [name for name in names if name not in then]
    return [*lines, *([f"not recorded then: {', '.join(missing)}"] if missing else [])]
