"""What came out of a run: settings, summary, curve and masks, from its own folder or a published one."""

import csv
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float32, Int8

from ssm.errors import LeftOut, UserError
from ssm.files import read_json
from ssm.recipes.presets import BLOCKS, NEUTRAL, recipe
from ssm.runs.folder import mask_path, read_summary
from ssm.runs.history import Row, curve, read_history
from ssm.runs.mask_file import load_masks
from ssm.runs.names import read_config, run_name
from ssm.runs.weight_file import load_weights, weight_path

_NAMED = ("model", "method", "init", "preset", "dataset", "epochs")
"""What a summary says of the configuration, for a folder without one."""

T = TypeVar("T")
V = TypeVar("V")


class DamagedRun(UserError):
    """A file of a run, in `folder`, is damaged or cannot be read."""

    def __init__(self, message: str, folder: Path):
        super().__init__(message)
        self.folder = folder


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Have what is wrong with a run's file be a DamagedRun."""
    try:
        yield
    except UserError as error:
        raise DamagedRun(str(error), folder) from error


def leave_out(error: DamagedRun) -> None:
    """Warn (LeftOut) that a damaged run is not counted."""
    warnings.warn(f"{error.folder} is left out: {error}", LeftOut, stacklevel=2)


def without_damaged(runs: Mapping[Path, T], use: Callable[[dict[Path, T]], V]) -> V:
    """Return `use(runs)`; a run, by its folder, that turns out to be damaged is left out with a warning (LeftOut).

    Raises:
        DamagedRun: if no other is left.
    """
    left = dict(runs)
    while True:
        try:
            return use(left)
        except DamagedRun as error:
            if left.pop(error.folder, None) is None or not left:
                raise
            leave_out(error)


@dataclass(frozen=True)
class FinishedRun:
    """A run with finished seeds, opened by `read_finished`; masks and curve are read when they are asked for."""

    folder: Path
    config: dict[str, Any]
    summary: dict[str, Any]

    @property
    def name(self) -> str:
        """The folder's own name, MODEL-METHOD-INIT-HASH."""
        return self.folder.resolve().name

    @property
    def seeds(self) -> list[int]:
        """The seeds that are finished and did not fail, ascending."""
        return sorted(int(seed) for seed in self.summary["test_accuracy"]["values"])

    @property
    def is_masked(self) -> bool:
        """Whether the run's learner has masks; a baseline trains all its weights."""
        return self.setting("method") != "baseline"

    @property
    def mask_seeds(self) -> list[int]:
        """Those of `seeds` whose masks are in the folder; none of a baseline."""
        if not self.is_masked:
            return []
        return [seed for seed in self.seeds if mask_path(self.folder, seed).exists()]

    @property
    def has_masks(self) -> bool:
        """Whether there are masks to look at."""
        return bool(self.mask_seeds)

    def frozen_hash(self, seed: int) -> str | None:
        """Return the hash of a seed's frozen weights (`ssm.training.frozen`); None if an older version trained it."""
        return self.summary.get("frozen", {}).get(str(seed))

    def setting(self, name: str) -> Any:
        """Return a value of the configuration; if the run is older than the option, the neutral one.

        For a folder without a configuration it is the preset's.

        Raises:
            DamagedRun: for a name that neither the configuration nor the preset knows.
        """
        if name in self.config:
            return self.config[name]
        if name in _NAMED:
            return self.summary[name]
        if self.config and name in NEUTRAL and not (name == "batch_norm" and self.setting("model") in BLOCKS):
            return NEUTRAL[name]
        model, method, preset, dataset = (self.setting(key) for key in ("model", "method", "preset", "dataset"))
        with reading(self.folder):
            usual = recipe(model, method, preset, dataset)
        if name not in usual:
            raise DamagedRun(f"{self.folder / 'config.json'} has no {name}, and it has no usual value", self.folder)
        return usual[name]

    def masks(self, seeds: Sequence[int] | None = None) -> dict[str, Int8[np.ndarray, "seeds ..."]]:
        """Return the final masks by layer, of these seeds in this order; of `mask_seeds` where none are named.

        Raises:
            UserError: where the folder keeps none, or not those of a seed that was asked for.
            DamagedRun: where a file is damaged.
        """
        if not self.is_masked:
            raise UserError(f"{self.folder} is a baseline: it has no masks")
        kept = self.mask_seeds
        if not kept:
            raise UserError(f"{self.folder} keeps no masks; name the folder that the run itself was written to")
        if seeds is None:
            seeds = kept
        if missing := sorted(set(seeds) - set(kept)):
            raise UserError(f"{self.folder} has no masks of seeds {', '.join(map(str, missing))}")
        if not seeds:
            raise UserError("no seeds were named whose masks to read")
        with reading(self.folder):
            found = [load_masks(mask_path(self.folder, seed)) for seed in seeds]
        shapes = {layer: mask.shape for layer, mask in found[0].items()}
        for seed, one in zip(seeds, found, strict=True):
            if {layer: mask.shape for layer, mask in one.items()} != shapes:
                raise DamagedRun(
                    f"{mask_path(self.folder, seed)} is damaged: its layers are not those of seed {seeds[0]}",
                    self.folder,
                )
        return {layer: np.stack([one[layer] for one in found]) for layer in shapes}

    def weights(self, seed: int) -> dict[str, Float32[np.ndarray, "..."]]:
        """Return the final weights by layer, as they are evaluated, of a seed of a method of the related work.

        Raises:
            UserError: where the folder does not keep them.
            DamagedRun: where the file is damaged.
        """
        path = weight_path(self.folder, seed)
        if not path.exists():
            raise UserError(
                f"{self.folder} keeps no weights of seed {seed}; the run's own folder has them, or train it again"
            )
        with reading(self.folder):
            return load_weights(path)

    def environments(self) -> list[tuple[list[int], dict[str, Any]]]:
        """Return what was recorded of programs and machines, each with the seeds that it trained; [] of a run without.

        Raises:
            DamagedRun: naming environment.json, if it is damaged.
        """
        path = self.folder / "environment.json"
        with reading(self.folder):
            try:
                entries = read_json(path) if path.exists() else []
                return [(list(map(int, entry["seeds"])), dict(entry["environment"])) for entry in entries]
            except (KeyError, TypeError, ValueError) as error:
                raise UserError(f"{path} is damaged: not the environments of a run ({error!r})") from error

    def curve(self) -> list[Row]:
        """Return mean, 5 % and 95 % quantile over the seeds, per epoch, as `ssm.runs.history.curve` makes them.

        Raises:
            DamagedRun: naming the file, if neither history.csv nor curve.csv is there, or it is damaged.
        """
        with reading(self.folder):
            if (self.folder / "history.csv").exists():
                seeds = set(self.seeds)
                return curve([row for row in read_history(self.folder / "history.csv") if row["seed"] in seeds])
            return _read_curve(self.folder / "curve.csv")


def read_finished(folder: str | os.PathLike[str]) -> FinishedRun:
    """Return the run in a folder, its own or a published one.

    Raises:
        UserError: naming the folder if it holds no run with finished seeds.
        DamagedRun: naming the file that is damaged.
    """
    folder = Path(folder)
    if not _has_summary(folder):
        raise UserError(f"{folder} holds no run with finished seeds: no summary.json in it")
    path = folder / "config.json"
    with reading(folder):
        return FinishedRun(folder, read_config(path) if path.exists() else {}, read_summary(folder))


def read_begun(folder: str | os.PathLike[str]) -> FinishedRun:
    """Return the run in a folder, of which no seed need be finished: its summary may be empty.

    Raises:
        UserError: naming the folder if no run was begun in it.
        DamagedRun: naming the file that is damaged.
    """
    folder = Path(folder)
    if _has_summary(folder):
        return read_finished(folder)
    path = folder / "config.json"
    if not path.exists():
        raise UserError(f"{folder} holds no run: no config.json in it")
    with reading(folder):
        return FinishedRun(folder, read_config(path), {})


def _has_summary(folder: Path) -> bool:
    """Say whether a run with finished seeds is there; raises DamagedRun for a folder that may not be looked into."""
    try:
        return (folder / "summary.json").exists()
    except OSError as error:
        raise DamagedRun(f"{folder} cannot be read: {error.strerror or error}", folder) from error


def find_finished(folders: Sequence[str | os.PathLike[str]]) -> list[FinishedRun]:
    """Return the runs in folders that are runs or hold some one level down; of two of one configuration, the larger.

    Of two as large it is the one with more masks: a run's own folder rather than what was published of it.
    A folder inside one of these that has no finished seed yet is skipped.  A damaged run is left out, with a warning
    (LeftOut), unless there is no other.

    Raises:
        UserError: naming a folder that is missing, unreadable or without finished seeds.
        DamagedRun: if all are damaged.
    """
    runs: dict[str, FinishedRun] = {}
    damaged: list[DamagedRun] = []
    for path in (path for folder in folders for path in _places(Path(folder))):
        try:
            run = read_finished(path)
        except DamagedRun as error:
            damaged.append(error)
            continue
        name = _name(run)
        if name not in runs or _size(run) > _size(runs[name]):
            runs[name] = run
    if damaged and not runs:
        raise damaged[0]
    for error in damaged:
        leave_out(error)
    return list(runs.values())


def _places(folder: Path) -> list[Path]:
    """Return the folders of runs that a folder is or holds, one that may not be looked into among them."""

    def may_be_run(path: Path) -> bool:
        try:
            return _has_summary(path)
        except DamagedRun:
            return True

    try:
        found = [folder] if may_be_run(folder) else [path for path in sorted(folder.iterdir()) if may_be_run(path)]
    except OSError as error:
        raise UserError(f"{folder} cannot be read: {error.strerror or error}") from error
    if not found:
        raise UserError(f"{folder} holds no run with finished seeds: no summary.json in it, or one folder down")
    return found


def _size(run: FinishedRun) -> tuple[int, int]:
    return len(run.seeds), len(run.mask_seeds)


def _name(run: FinishedRun) -> str:
    """Return what a run's configuration is called now, whichever version named the folder."""
    try:
        return run_name(run.config)
    except KeyError:  # no configuration, or not all of it
        return run.name


def _read_curve(path: Path) -> list[Row]:
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            if (reader.fieldnames or ())[:2] != ["epoch", "seeds"]:
                raise UserError(f"{path} is damaged: its first line does not start with epoch,seeds")
            points: list[Row] = []
            for texts in reader:
                values: Row = {key: float(text) for key, text in texts.items()}
                points.append(values | {key: int(texts[key]) for key in ("epoch", "seeds")})
            return points
    except FileNotFoundError:
        raise UserError(f"{path} does not exist, nor a history.csv beside it") from None
    except (ValueError, TypeError, KeyError, csv.Error) as error:  # TypeError: a line of another length
        raise UserError(f"{path} is damaged: not the curve of a run ({error})") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error


def spans(seeds: Sequence[int]) -> str:
    """Return whole numbers in short: "0 to 49, 60"."""
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return ", ".join(f"{first} to {last}" if last > first else f"{first}" for first, last in runs)
