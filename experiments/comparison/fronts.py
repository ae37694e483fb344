"""The table of recipes, each beside the front of `best` at its own density, and the picture of the fronts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from comparison.recipes import BEST, Recipe
from comparison.records import figures
from comparison.report import between, comma_separated, missing, scatter, seeds
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


def record(row: Recipe, decay: float, run: FinishedRun | None) -> dict[str, Any]:
    """Return what is known of a row from its weight decay and its run, flat; `runs` of 0 where there is none."""
    named = {"name": row.name, "part": row.part, "preset": row.preset, "method": row.method, "values": "frozen"}
    return named | {"weight_decay": decay, "runs": 0, "failed": 0} | ({} if run is None else figures(run))


def write(records: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write beyond.md, beyond.csv and beyond-density.png into a folder, each whole or not at all."""
    write_atomic(folder / "beyond.md", table(records))
    write_atomic(folder / "beyond.csv", comma_separated(records))
    if fronts := [one for one in records if one["part"] == "front" and one["method"] != "baseline" and one["runs"]]:
        write_atomic(folder / "beyond-density.png", scatter(fronts, "density", "remaining weights (%)", 100))


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the table as Markdown, in the order of the rows; those that were not run as such."""
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


def _cells(one: Mapping[str, Any], front: Sequence[tuple[float, float]]) -> list[str]:
    if not one["runs"]:
        return [one["name"], "", f"{one['weight_decay']:.3g}", "", missing(one), *[""] * (len(HEAD) - 5)]
    there = None if one["name"] == BEST else on_front(front, one["density"])
    return [
        one["name"],
        f"{one['learning_rate']:.3g}",
        f"{one['weight_decay']:.3g}",
        str(one["epochs"]),
        f"{100 * one['accuracy']:.2f}",
        between(one, "lowest", "highest"),
        f"{100 * one['density']:.2f}",
        between(one, "sparsest", "densest"),
        "" if there is None else f"{100 * (one['accuracy'] - there):+.2f}",
        seeds(one),
    ]
