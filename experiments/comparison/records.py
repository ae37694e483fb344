"""What came of a comparison's runs, as flat records, and which of their differences are more than chance."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from comparison.entries import Entry
from ssm.analysis.statistics import welch
from ssm.errors import UserError
from ssm.runs.history import read_history
from ssm.runs.names import run_folder
from ssm.runs.reader import FinishedRun, read_finished

DRAWN = ("zhou", "lr_net")
"""Methods whose weights are drawn when they are tested."""


def record(
    number: int,
    entry: Entry,
    density: float | None,
    run: FinishedRun | None,
    known: Mapping[str, Mapping[str, float]] | None = None,
    *,
    seconds: Mapping[str, float] | None = None,
    tests: Any = None,
) -> dict[str, Any]:
    """Return what is known of a row from its run; `runs` of 0 where there is none.

    known: `known_nets`, for runs that do not have their nets any more.  seconds: per epoch and seed on an idle machine,
    by method; otherwise they are the run's own.  tests: images and labels for nets that training tests by draws.
    """
    found: dict[str, Any] = {
        "number": number,
        "name": entry.name,
        "method": entry.method,
        "values": entry.values,
        "asked": density,
        "runs": 0,
    }
    if run is None:
        return found
    accuracies, densities = (
        list(run.summary[key]["values"].values()) for key in ("test_accuracy", "remaining_weights")
    )
    found |= {
        "run": run.folder.name,
        "runs": len(accuracies),
        "failed": len(run.summary["failed"]),
        "dead": emptied(run.summary["failed"]),
        "learning_rate": run.setting("learning_rate"),
        "epochs": run.setting("epochs"),
        "accuracies": accuracies,
    }
    if not accuracies:
        return found
    size, drawn = net_bytes(run, entry, run.mask_seeds[0] if run.mask_seeds else 0), None
    earlier = (known or {}).get(run.folder.name, {})
    size = earlier.get("bytes") if size is None else size
    if entry.method in DRAWN:
        drawn = None if tests is None else file_accuracy(run, *tests)
        drawn = earlier.get("file_accuracy") if drawn is None else drawn
    layers = last_layers(run)
    return found | {
        "accuracy": float(np.mean(accuracies)),
        "lowest": min(accuracies),
        "highest": max(accuracies),
        "density": float(np.mean(densities)),
        "layers": {name: float(np.mean(shares)) for name, shares in layers.items()},
        "dead": sorted({*found["dead"], *(name for name, shares in layers.items() if min(shares) == 0)}),
        "seconds": (seconds or {}).get(entry.method, run.summary["seconds_per_epoch_and_seed"]["median"]),
        "file_accuracy": drawn,
        "bytes": size,
        "bits": None if size is None else 8 * size / run.summary["weights"],
    }


def emptied(failed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the layers that had no weight left in excluded seeds, of a summary's `failed`."""
    found = (str(one.get("reason", "")).partition("no weight is left in ")[2].split(", ") for one in failed)
    return sorted({layer for layers in found for layer in layers if layer})


def known_nets(table: Path) -> dict[str, dict[str, float]]:
    """Return what a table as CSV says of nets, by run: `bytes`, `file_accuracy`; of runs published without weights."""
    if not table.exists():
        return {}
    with table.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row.get("run")]
    kinds = (("bytes", int), ("file_accuracy", float))
    return {row["run"]: {name: kind(row[name]) for name, kind in kinds if row.get(name)} for row in rows}


def idle_seconds(path: Path) -> dict[str, float]:
    """Return the median seconds per epoch and seed by method that benchmarks/learners.py printed into a file first."""
    found: dict[str, float] = {}
    for name, median in re.findall(r"^(\w+) +minimum .*? median (\S+) s per", path.read_text("utf-8"), re.MULTILINE):
        found.setdefault(name, float(median))
    return found


def file_accuracy(run: FinishedRun, images: Any, labels: Any) -> float | None:
    """Return the mean test accuracy, over a run's seeds, of the nets as they are stored; None where they are not kept.

    A stored net has the likeliest weights, where training tests the mean of several draws.
    """
    from ssm.export.conversion import from_run

    try:
        nets = [from_run(run, seed).runtime() for seed in run.mask_seeds]
    except UserError:  # published without its weights
        nets = []
    return float(np.mean([np.mean(net.logits(images).argmax(1) == labels) for net in nets])) if nets else None


def finished(folders: Sequence[Path], settings: Mapping[str, Any]) -> FinishedRun | None:
    """Return the run of a configuration that has the most seeds among some folders; None where none has one."""
    found = [run_folder(folder, settings) for folder in folders if folder.exists()]
    runs = [read_finished(folder) for folder in found if (folder / "summary.json").exists()]
    return max(runs, key=trained, default=None)


def trained(run: FinishedRun) -> int:
    """Return how many seeds a run has, excluded ones included."""
    return len(run.seeds) + len(run.summary["failed"])


def last_layers(run: FinishedRun) -> dict[str, list[float]]:
    """Return the share of non-zero weights of each layer at the end, by seed; of a published run the mean alone."""
    path = run.folder / "history.csv"
    if path.exists():
        rows = list({row["seed"]: row for row in read_history(path) if row["seed"] in set(run.seeds)}.values())
    else:
        rows = run.curve()[-1:]
    names = [name for name in rows[0] if name.endswith(":remaining")]
    return {name.removesuffix(":remaining"): [float(row[name]) for row in rows] for name in names}


def with_differences(records: Sequence[dict[str, Any]], reference: str) -> list[dict[str, Any]]:
    """Return the records with the difference of their accuracy to the reference's, and its p, corrected by Holm's rule.

    reference: a row's name; of several densities the one that a record was asked for.  Source: Welch's t-test over the
    seeds; Holm 1979.
    """
    found = {one["asked"]: one.get("accuracies", []) for one in records if one["name"] == reference}
    own = [found.get(one["asked"], found.get(None, [])) for one in records]
    tested = [
        (p, index)
        for index, one in enumerate(records)
        if one["name"] != reference and (p := welch(one.get("accuracies", []), own[index])) is not None
    ]
    corrected = dict(zip((index for _, index in sorted(tested)), holm(sorted(p for p, _ in tested)), strict=True))
    return [
        one
        | {
            "difference": one["accuracy"] - float(np.mean(own[index])) if own[index] and "accuracy" in one else None,
            "p": corrected.get(index),
        }
        for index, one in enumerate(records)
    ]


def holm(rising: Sequence[float]) -> list[float]:
    """Return rising p values corrected for their number n: the largest of (n - i) p_i so far, at most 1."""
    scaled = [(len(rising) - place) * p for place, p in enumerate(rising)]
    return [min(1.0, float(value)) for value in np.maximum.accumulate(scaled)] if scaled else []


def net_bytes(run: FinishedRun, entry: Entry, seed: int) -> int | None:
    """Return the bytes of a seed's net as a file, or of a dense net's float32 weights; None where nothing is kept."""
    from ssm.export.conversion import from_run
    from ssm.export.serialization import to_bytes

    if entry.method == "baseline":
        return 4 * run.summary["weights"]
    if not run.has_masks:
        return None
    try:
        return len(to_bytes(from_run(run, seed)))
    except UserError:  # of an earlier version, say, which kept too little
        return None
