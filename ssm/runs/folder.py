"""One folder a run: its configuration, its environment, every seed's history, and the summary made from them.

    NAME/config.json        the whole resolved configuration, without seeds and paths: the run's identity
    NAME/environment.json   [{"environment": ..., "seeds": [...]}]: later seeds may be another machine's
    NAME/history.csv        long format, one row per seed and epoch
    NAME/summary.json       the statistics, hashes of the frozen weights, and the list of the finished seeds: written last
    NAME/masks/seed-0003.npz
    NAME/values/seed-0003.npz   only of nets with batch normalisation: its scales, offsets and statistics
    NAME/examples/seed-0003.npz   of built-in nets with masks: some test samples, and the trained net's outputs of them
    NAME/weights/seed-0003.npz   only of the related work's methods: the final weights, as they are evaluated
    NAME/parts/...          seeds that other processes of a distributed run have finished, until they are added

A seed is finished once summary.json names it. Whatever else a crash leaves behind is dropped on reopening.
Shares are 0..1 in every file; per cent is for printing.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ssm.runs.statistics import interval
from ssm.errors import UserError
from ssm.files import plain, read_json, write_json
from ssm.recipes.presets import NEUTRAL
from ssm.runs.example_file import example_path, save_examples
from ssm.runs.history import Row, read_history, with_same_columns, write_history
from ssm.runs.lock import HOLDER, LOCK
from ssm.runs.mask_file import save_masks
from ssm.runs.names import differences, read_config, run_folder, run_name, understood
from ssm.runs.value_file import save_values, value_path
from ssm.runs.weight_file import save_weights, weight_path

PARTS = "parts"


def mask_path(folder: str | os.PathLike[str], seed: int) -> Path:
    """Return where a run's folder keeps the final masks of one seed."""
    return Path(folder) / "masks" / f"seed-{seed:04d}.npz"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run's folder, opened by `open_run`; its state is what the files say, read anew each time."""

    folder: Path
    config: Mapping[str, Any]
    environment: Mapping[str, Any]
    source: str
    weights: int | None

    def summary(self) -> dict[str, Any] | None:
        """Return what summary.json says; None before the first seed is finished."""
        return read_summary(self.folder) if (self.folder / "summary.json").exists() else None

    def finished_seeds(self) -> list[int]:
        """Return the seeds that need not be run again, ascending: with a result, or failed."""
        return _finished(self.summary())

    def missing_seeds(self, seeds: Sequence[int]) -> list[int]:
        """Return those of the seeds that the run lacks, each once.

        Raises:
            UserError: if there are some, and the run is a published one, to which none can be added.
        """
        finished = set(self.finished_seeds())
        missing = [seed for seed in dict.fromkeys(seeds) if seed not in finished]
        if missing:
            self._check_whole()
        return missing

    def add_seeds(
        self,
        *,
        history_rows: Sequence[Mapping[str, Any]],
        finals: Sequence[Mapping[str, Any]],
        masks: Mapping[int, Mapping[str, np.ndarray]] | None = None,
        values: Mapping[int, Mapping[str, np.ndarray]] | None = None,
        examples: Mapping[int, Mapping[str, np.ndarray]] | None = None,
        weights: Mapping[int, Mapping[str, np.ndarray]] | None = None,
    ) -> dict[str, Any]:
        """Add finished seeds to the run and return the new summary; all of them are added, or none.

        history_rows: one per seed and epoch: seed, epoch, train_loss, ...; all with the same keys.
        finals: one per seed: seed, test_accuracy and remaining_weights (shares 0..1), and failed_epoch and
            failed_reason for one that was excluded (otherwise absent or None). It is finished, but in no statistics.
            frozen, the hash of its frozen weights, if there is one.
        masks: by seed and layer, values in {-1, 0, 1}.
        values: by seed and name, what the net has beside its masks.
        examples: by seed, `inputs` and the trained net's `outputs` of some test samples.
        weights: by seed and layer, the effective weights, float32.

        Seeds that are finished already, here or by another program meanwhile, stay as they are.

        Raises:
            ValueError: if a row belongs to no final, or a figure of a seed that did not fail is not finite.
            OSError: if a file cannot be written.
            UserError: if the files on disk are damaged.
        """
        strangers = {int(row["seed"]) for row in history_rows} - {int(final["seed"]) for final in finals}
        if strangers:
            raise ValueError(f"history rows of seeds without a final entry: {sorted(strangers)}")
        for final in finals:
            figures = final["test_accuracy"], final["remaining_weights"]
            if final.get("failed_epoch") is None and not np.isfinite(figures).all():
                raise ValueError(f"seed {final['seed']} is not marked as failed, but has figures {figures}")
        self.folder.mkdir(parents=True, exist_ok=True)  # it may have been removed under a long run
        with _locked(self.folder):
            check_config(self.folder / "config.json", self.config)
            self._check_whole()
            before = self.summary()
            known = set(_finished(before))
            new = {int(final["seed"]): final for final in finals if int(final["seed"]) not in known}
            rows = [row for row in self._history() if row["seed"] in known]
            added = [row for row in history_rows if int(row["seed"]) in new]
            try:
                rows, added = with_same_columns(rows, [dict(row) for row in added])
            except ValueError as error:
                path = self.folder / "history.csv"
                raise UserError(f"{path} has other columns: it's another version's run ({error})") from error
            rows = sorted([*rows, *added], key=lambda row: (int(row["seed"]), int(row["epoch"])))
            self._save_arrays(set(new), masks or {}, values or {}, examples or {}, weights or {})
            write_history(self.folder / "history.csv", rows)
            self._note_environment(sorted(new))
            # Last: until it names a seed, that isn't finished, and all of the above is dropped or replaced.
            summary = self._summarise(before, new, rows)
            write_json(self.folder / "summary.json", summary)
        return plain(summary)

    def add_part(
        self,
        *,
        history_rows: Sequence[Mapping[str, Any]],
        finals: Sequence[Mapping[str, Any]],
        masks: Mapping[int, Mapping[str, np.ndarray]],
        values: Mapping[int, Mapping[str, np.ndarray]] | None = None,
        examples: Mapping[int, Mapping[str, np.ndarray]] | None = None,
        weights: Mapping[int, Mapping[str, np.ndarray]] | None = None,
    ) -> None:
        """Write finished seeds beside the run, for the one process that adds them (`add_parts`); as `add_seeds`."""
        self._save_arrays(set(masks), masks, values or {}, examples or {}, weights or {})
        part = {"environment": self.environment, "weights": self.weights, "history": history_rows, "finals": finals}
        name = "-".join(str(final["seed"]) for final in finals)
        write_json(self.folder / PARTS / f"{hashlib.sha256(name.encode()).hexdigest()[:12]}.json", part)

    def add_parts(self) -> None:
        """Add what other processes have finished, and remove their parts; raises as `add_seeds` does."""
        for path in sorted((self.folder / PARTS).glob("*.json")):
            part = read_json(path)
            try:
                own = replace(self, environment=part["environment"], weights=part["weights"])
                finals = [{**final, **_figures(final)} for final in part["finals"]]
                own.add_seeds(history_rows=part["history"], finals=finals)
            except (KeyError, TypeError) as error:
                raise UserError(f"{path} is damaged: not a part of a run ({error!r})") from error
            path.unlink()

    def _save_arrays(
        self,
        seeds: set[int],
        masks: Mapping[int, Mapping[str, np.ndarray]],
        values: Mapping[int, Mapping[str, np.ndarray]],
        examples: Mapping[int, Mapping[str, np.ndarray]],
        weights: Mapping[int, Mapping[str, np.ndarray]],
    ) -> None:
        for seed in seeds & set(masks):
            save_masks(mask_path(self.folder, seed), masks[seed])
        for seed in seeds & {seed for seed, own in examples.items() if own}:
            save_examples(example_path(self.folder, seed), examples[seed])
        for seed in seeds & {seed for seed, own in values.items() if own}:
            save_values(value_path(self.folder, seed), values[seed])
        for seed in seeds & {seed for seed, own in weights.items() if own}:
            save_weights(weight_path(self.folder, seed), weights[seed])

    def _history(self) -> list[Row]:
        path = self.folder / "history.csv"
        needed = self.finished_seeds() and not self._published()
        return read_history(path) if needed or path.exists() else []

    def _published(self) -> bool:
        """Say whether the folder has the curve over the seeds that experiments/publish.py leaves of their histories."""
        return (self.folder / "curve.csv").exists() and not (self.folder / "history.csv").exists()

    def _check_whole(self) -> None:
        if self._published():
            raise UserError(
                f"{self.folder} is a published run, without its history.csv: no seeds can be added; choose another --out"
            )

    def _note_environment(self, seeds: list[int]) -> None:
        path = self.folder / "environment.json"
        environment = plain(self.environment)
        entries = read_json(path) if path.exists() else []
        try:
            for entry in entries:
                entry["seeds"] = [seed for seed in entry["seeds"] if seed not in seeds]
            entry = next((entry for entry in entries if entry["environment"] == environment), None)
        except (KeyError, TypeError) as error:
            raise UserError(f"{path} is damaged: not the environments of a run ({error!r})") from error
        if entry is None:
            entry = {"environment": environment, "seeds": []}
            entries.append(entry)
        entry["seeds"] = sorted([*entry["seeds"], *seeds])
        # One that no seed came from says nothing, unless it's all there is.
        write_json(path, [one for one in entries if one["seeds"]] or [entry])

    def _summarise(
        self,
        before: Mapping[str, Any] | None,
        new: Mapping[int, Mapping[str, Any]],
        rows: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        failed = {entry["seed"]: entry for entry in before["failed"]} if before else {}
        failed |= {
            seed: {"seed": seed, "epoch": final["failed_epoch"], "reason": final.get("failed_reason")}
            for seed, final in new.items()
            if final.get("failed_epoch") is not None
        }
        statistics = {}
        for name in ("test_accuracy", "remaining_weights"):
            values: dict[int, float] = {}
            if before:
                values |= {int(seed): value for seed, value in before[name]["values"].items()}
            values |= {seed: float(final[name]) for seed, final in new.items() if seed not in failed}
            statistics[name] = _statistics(values)
        frozen = {int(seed): text for seed, text in (before or {}).get("frozen", {}).items()}
        frozen |= {seed: final["frozen"] for seed, final in new.items() if seed not in failed and final.get("frozen")}
        seconds = [row["seconds"] for row in rows if "seconds" in row]
        sources = before["source"].split("; ") if before and before["source"] else []
        config = self.config
        return {
            **{key: config.get(key) for key in ("model", "method", "init", "preset", "dataset")},
            "source": "; ".join([*sources, *([self.source] if self.source not in (*sources, "") else [])]),
            "epochs": config.get("epochs"),
            "runs": len(statistics["test_accuracy"]["values"]),
            "weights": self.weights if self.weights is not None else (before or {}).get("weights"),
            "test_accuracy": statistics["test_accuracy"],
            "remaining_weights": statistics["remaining_weights"],
            "seconds_per_epoch_and_seed": {
                "mean": float(np.mean(seconds)) if seconds else None,
                "median": float(np.median(seconds)) if seconds else None,
            },
            "failed": [entry for _, entry in sorted(failed.items())],
            "frozen": dict(sorted(frozen.items())),
        }


def open_run(
    root: str | os.PathLike[str],
    *,
    config: Mapping[str, Any],
    environment: Mapping[str, Any],
    source: str = "",
    weights: int | None = None,
    folder: Path | None = None,
) -> Run:
    """Make or reopen a run's folder under `root` (`run_folder`), and drop what a crash left half done.

    config: the resolved configuration without seeds and paths; its model, method, init, preset, dataset and
        epochs go into the summary.
    environment: versions, device, precision, git commit.
    source: where the data came from.
    weights: how many the model has.
    folder: the run's own, if it is known already.

    Raises:
        UserError: if the folder cannot be written, holds another configuration, or is damaged.
    """
    folder = folder or run_folder(root, config)
    run = Run(folder=folder, config=plain(config), environment=environment, source=source, weights=weights)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            check_config(folder / "config.json", run.config)
            for litter in folder.rglob(".*.tmp"):
                litter.unlink()
            finished = set(run.finished_seeds())
            rows = run._history()
            if any(row["seed"] not in finished for row in rows):
                write_history(folder / "history.csv", [row for row in rows if row["seed"] in finished])
            run._note_environment([])
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}; choose another --out") from error
    return run


def clear(folder: Path) -> None:
    """Remove all that a run's folder holds, the lock of who calls excepted; the list of finished seeds first.

    Raises UserError where something cannot be removed, or the folder is no run's.
    """
    content = [path for path in folder.iterdir() if path.name not in (LOCK, HOLDER)]
    if content and not (folder / "config.json").exists():
        raise UserError(f"{folder} holds no run: nothing in it is removed")
    try:
        (folder / "summary.json").unlink(missing_ok=True)
        for path in content:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be emptied: {error.strerror or error}") from error


def check_config(path: Path, config: Mapping[str, Any]) -> None:
    """Raise UserError if a run's config.json holds another configuration; write it where there is none."""
    if not path.exists():
        write_json(path, config)
        return
    found = understood(read_config(path), {*config, *NEUTRAL}, path.parent.name)
    if other := differences(found, config):
        raise UserError(
            f"{path} holds another configuration ({', '.join(other)} differ): move that folder away, or choose another "
            "--out"
        )


def read_summary(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the summary of a run's folder, its own or a published one.

    Raises:
        UserError: naming the file, if it is missing or damaged, or no run's summary.
    """
    path = Path(folder) / "summary.json"
    summary = read_json(path)
    try:
        for name in ("test_accuracy", "remaining_weights"):
            for key in ("mean", "q05", "q95", "std"):
                _ = summary[name][key]
            _ = {int(seed): float(value) for seed, value in summary[name]["values"].items()}
        _ = [(int(entry["seed"]), int(entry["epoch"])) for entry in summary["failed"]]
        _ = {int(seed): text for seed, text in summary.get("frozen", {}).items()}
        _ = [summary[key] for key in ("model", "method", "init", "preset", "dataset", "source", "epochs", "weights")]
        _ = summary["seconds_per_epoch_and_seed"]["median"], int(summary["runs"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path} is damaged: not the summary of a run ({error!r})") from error
    return summary


def _figures(final: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures of a part's final entry; JSON has no word for one that is not finite."""
    names = ("test_accuracy", "remaining_weights")
    return {name: float("nan") if final[name] is None else final[name] for name in names}


def _finished(summary: Mapping[str, Any] | None) -> list[int]:
    if summary is None:
        return []
    return sorted([*map(int, summary["test_accuracy"]["values"]), *(entry["seed"] for entry in summary["failed"])])


def _statistics(values: Mapping[int, float]) -> dict[str, Any]:
    values = dict(sorted(values.items()))  # a sum must not depend on which seeds came first
    found: dict[str, Any] = dict.fromkeys(("mean", "q05", "q95", "std"))
    if values:
        found |= interval(list(values.values()))._asdict()
    return {**found, "values": values}


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder, so that two programs that add seeds to one run at once don't lose each other's."""
    try:
        import fcntl
    except ImportError:  # Windows: one program at a time is the user's care
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
