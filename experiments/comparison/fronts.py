"""The table of recipes, each beside the front of `best` at its own density, and the picture of the fronts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from comparison.recipes import BEST, Recipe
from comparison.report import comma_separated, scatter
from ssm.files import write_atomic
from ssm.runs.reader import FinishedRun

HEAD = (
    "recipe",
    "rate",
    "decay",
    "epochs",
    "accuracy %",
    "range",
    "remaining %",
    "range",
    "beside best's front",
    "seeds",
)
Found = Sequence[tuple[Recipe, float, FinishedRun | None]]
"""Rows with their weight decay, and their run where it is finished."""


def write(found: Found, folder: Path) -> None:
    """Write beyond.md, beyond.csv and beyond-density.png into a folder, each whole or not at all."""
    records = _records(found)
    write_atomic(folder / "beyond.md", table(found))
    write_atomic(folder / "beyond.csv", comma_separated(records))
    if fronts := [one for one in records if one["part"] == "front" and one["method"] != "baseline" and one["runs"]]:
        write_atomic(folder / "beyond-density.png", scatter(fronts, "density", "remaining weights (%)", 100))


def table(found: Found) -> str:
    """Return the table as Markdown, in the order of the rows; those that were not run as such."""
    records = _records(found)
    front = sorted((one["density"], one["accuracy"]) for one in records if one["name"] == BEST and one["runs"])
    lines = [HEAD, ["---"] * len(HEAD), *(_cells(one, front) for one in records)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def on_front(front: Sequence[tuple[float, float]], density: float) -> float | None:
    """Return the accuracy of a front at a density, between its points linear in the density's logarithm.

    front: densities and accuracies, by rising density.  None outside of it.
    """
    if not front or not front[0][0] <= density <= front[-1][0]:
        return None
    densities, accuracies = zip(*front, strict=True)
    return float(np.interp(np.log(density), np.log(densities), accuracies))


def _records(found: Found) -> list[dict[str, Any]]:
    """Return what is known of each row, flat; `runs` of 0 where there is none."""
    return [_record(row, decay, run) for row, decay, run in found]


def _record(row: Recipe, decay: float, run: FinishedRun | None) -> dict[str, Any]:
    named = {"name": row.name, "part": row.part, "preset": row.preset, "method": row.method, "values": "frozen"}
    named |= {"weight_decay": decay, "runs": 0}
    if run is None or not run.seeds:
        return named | {"failed": 0 if run is None else len(run.summary["failed"])}
    accuracies, densities = (
        list(run.summary[key]["values"].values()) for key in ("test_accuracy", "remaining_weights")
    )
    return named | {
        "run": run.folder.name,
        "runs": len(accuracies),
        "failed": len(run.summary["failed"]),
        "learning_rate": run.setting("learning_rate"),
        "epochs": run.setting("epochs"),
        "accuracy": float(np.mean(accuracies)),
        "lowest": min(accuracies),
        "highest": max(accuracies),
        "density": float(np.mean(densities)),
        "sparsest": min(densities),
        "densest": max(densities),
        "accuracies": accuracies,
    }


def _cells(one: dict[str, Any], front: Sequence[tuple[float, float]]) -> list[str]:
    if not one["runs"]:
        state = f"no seed of {one['failed']} was left" if one["failed"] else "not run"
        return [one["name"], "", f"{one['weight_decay']:.3g}", "", state, *[""] * (len(HEAD) - 5)]
    there = None if one["name"] == BEST else on_front(front, one["density"])
    return [
        one["name"],
        f"{one['learning_rate']:.3g}",
        f"{one['weight_decay']:.3g}",
        str(one["epochs"]),
        f"{100 * one['accuracy']:.2f}",
        f"{100 * one['lowest']:.2f} to {100 * one['highest']:.2f}",
        f"{100 * one['density']:.2f}",
        f"{100 * one['sparsest']:.2f} to {100 * one['densest']:.2f}",
        "" if there is None else f"{100 * (one['accuracy'] - there):+.2f}",
        f"{one['runs']}, {one['failed']} excluded" if one["failed"] else str(one["runs"]),
    ]
