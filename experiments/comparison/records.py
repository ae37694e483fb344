"""What came of a comparison's runs, as flat records, and which of their differences are more than chance."""

import csv
import math
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


def figures(run: FinishedRun) -> dict[str, Any]:
    """Return a run's accuracies and densities, each seed's and what they come to; without a seed left, its name."""
    accuracies, densities = (
        list(run.summary[key]["values"].values()) for key in ("test_accuracy", "remaining_weights")
    )
    found: dict[str, Any] = {
        "run": run.folder.name,
        "runs": len(accuracies),
        "failed": len(run.summary["failed"]),
        "learning_rate": run.setting("learning_rate"),
        "epochs": run.setting("epochs"),
        "accuracies": accuracies,
    }
    if accuracies:
        found |= {"accuracy": float(np.mean(accuracies)), "lowest": min(accuracies), "highest": max(accuracies)}
        found |= {"density": float(np.mean(densities)), "sparsest": min(densities), "densest": max(densities)}
    return found


def record(
    number: int,
    entry: Entry,
    density: float | None,
    run: FinishedRun | None,
    known: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    seconds: Mapping[str, float] | None = None,
    dataset: Any = None,
) -> dict[str, Any]:
    """Return what is known of a row from its run; `runs` of 0 where there is none.

    known: `known_nets`, for runs that do not have their nets any more.  seconds: per epoch and seed on an idle
    CPU, by method; without them, and of runs on a GPU, they are the run's own.  dataset: to test stored nets that
    training tests by draws.
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
    found |= figures(run) | {"dead": emptied(run.summary["failed"])}
    if not found["runs"]:
        return found
    nets = {**(known or {}).get(run.folder.name, {}), **stored(run, entry, dataset), **last_layers(run)}
    size = nets.get("bytes")
    own = run.summary["seconds_per_epoch_and_seed"]["median"]
    if any(machine.get("backend", "cpu") != "cpu" for _, machine in run.environments()):
        seconds = None
    return found | {
        "layers": nets.get("layers", {}),
        "dead": sorted({*found["dead"], *nets.get("dead", ())}),
        "seconds": seconds.get(entry.method) if seconds is not None else own,
        "file_accuracy": nets.get("file_accuracy"),
        "nonzero": nets.get("nonzero"),
        "bytes": size,
        "bits": None if size is None else 8 * size / run.summary["weights"],
    }


def emptied(failed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the layers that had no weight left in excluded seeds, of a summary's `failed`."""
    found = (str(one.get("reason", "")).partition("no weight is left in ")[2].split(", ") for one in failed)
    return sorted({layer for layers in found for layer in layers if layer})


def known_nets(*tables: Path) -> dict[str, dict[str, Any]]:
    """Return what tables as CSV say of nets, by run: what `stored` and `last_layers` return.

    So a table can be made again of runs that were published without weights and histories.  Of several tables that say
    something of a run the last one counts.
    """
    kinds = {"bytes": int, "nonzero": float, "file_accuracy": float, "layers": _layers, "dead": str.split}
    found: dict[str, dict[str, Any]] = {}
    for table in filter(Path.exists, tables):
        with table.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row.get("run")]
        for row in rows:
            known = {name: kind(row[name]) for name, kind in kinds.items() if row.get(name)}
            found.setdefault(row["run"], {}).update(known)
    return found


def _layers(text: str) -> dict[str, float]:
    """Return the shares of layers, as `comparison.report.comma_separated` writes them."""
    pairs = (part.rpartition("=") for part in text.split())
    return {name: float(share) for name, _, share in pairs}


def idle_seconds(path: Path) -> dict[str, float]:
    """Return the median seconds per epoch and seed by method that benchmarks/learners.py printed into a file first."""
    found: dict[str, float] = {}
    for name, median in re.findall(r"^(\w+) +minimum .*? median (\S+) s per", path.read_text("utf-8"), re.MULTILINE):
        found.setdefault(name, float(median))
    return found


def finished(folders: Sequence[Path], settings: Mapping[str, Any]) -> FinishedRun | None:
    """Return the run of a configuration that has the most seeds among some folders; None where none has one."""
    found = [run_folder(folder, settings) for folder in folders if folder.exists()]
    runs = [read_finished(folder) for folder in found if (folder / "summary.json").exists()]
    return max(runs, key=trained, default=None)


def trained(run: FinishedRun) -> int:
    """Return how many seeds a run has, excluded ones included."""
    return len(run.seeds) + len(run.summary["failed"])


def last_layers(run: FinishedRun) -> dict[str, Any]:
    """Return what is left of each layer in the end; nothing of a run that was published without its history.

    layers: the share of its weights that is kept, by name, the seeds' mean.  dead: those with none in a seed.
    """
    path = run.folder / "history.csv"
    if not path.exists():
        return {}
    rows = list({row["seed"]: row for row in read_history(path) if row["seed"] in set(run.seeds)}.values())
    names = [name for name in rows[0] if name.endswith(":remaining")]
    shares = {name.removesuffix(":remaining"): [float(row[name]) for row in rows] for name in names}
    means = {name: float(np.mean(of_seeds)) for name, of_seeds in shares.items()}
    return {"layers": means, "dead": [name for name, of_seeds in shares.items() if min(of_seeds) == 0]}


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


def stored(run: FinishedRun, entry: Entry, dataset: Any = None) -> dict[str, float | None]:
    """Return what nets are as files; nothing where a run keeps too little.

    bytes: of one seed's net, or of a dense net's float32 weights.  nonzero: the share of its weights that are not 0;
    None where its mask keeps hardly any others.  file_accuracy: the mean over the seeds on the test images of
    `dataset`, where training tests draws, and a file has one net; of runs that keep all nets.
    """
    from ssm.export.conversion import from_run
    from ssm.export.serialization import to_bytes

    if entry.method == "baseline":
        return {"bytes": 4 * run.summary["weights"]}
    try:
        nets = (from_run(run, seed) for seed in run.mask_seeds)
        if (first := next(nets, None)) is None:
            return {}
        nonzero, kept = first.remaining / first.weights, first.about["remaining_weights"]
        alike = math.isclose(nonzero, kept, rel_tol=0.01)  # of thousands one or another is 0 by chance
        found: dict[str, float | None] = {"bytes": len(to_bytes(first)), "nonzero": None if alike else nonzero}
        if dataset is not None and list(run.mask_seeds) == list(run.seeds) and "test_accuracy_of_draws" in first.about:
            hits = [
                net.runtime().logits(dataset.test_images).argmax(1) == dataset.test_labels for net in (first, *nets)
            ]
            found["file_accuracy"] = float(np.mean(hits))
        return found
    except UserError:  # of an earlier version, say, which kept too little, or published without its weights
        return {}
