"""The table of recipes, each beside the fronts of `best` and `default` at its own density, and their picture."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from comparison.recipes import BEST, DEFAULT, Recipe
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
    "beside default's",
    "seeds",
)


def record(row: Recipe, decay: float, run: FinishedRun | None) -> dict[str, Any]:
    """Return what is known of a row from its weight decay and its run, flat; `runs` of 0 where there is none."""
    named = {"name": row.name, "part": row.part, "preset": row.preset, "method": row.method, "values": "frozen"}
    return named | {"weight_decay": decay, "runs": 0, "failed": 0} | ({} if run is None else figures(run))


def write(records: Sequence[Mapping[str, Any]], folder: Path, name: str) -> None:
    """Write NAME.md, NAME.csv and, of fronts, NAME-density.png into a folder, each whole or not at all."""
    write_atomic(folder / f"{name}.md", table(records))
    write_atomic(folder / f"{name}.csv", comma_separated(records))
    points = [one for one in records if one["part"] == "front" and one["runs"]]
    names = Counter(one["name"] for one in points)
    if fronts := [one for one in points if names[one["name"]] > 1]:
        write_atomic(folder / f"{name}-density.png", scatter(fronts, "density", "remaining weights (%)", 100))


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the table as Markdown, in the order of the rows; those that were not run as such."""
    fronts = {
        name: sorted((one["density"], one["accuracy"]) for one in records if one["name"] == name and one["runs"])
        for name in (BEST, DEFAULT)
    }
    lines = [HEAD, ["---"] * len(HEAD), *(_cells(one, fronts) for one in records)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def on_front(front: Sequence[tuple[float, float]], density: float) -> float | None:
    """Return the accuracy of a front at a density, between its points linear in the density's logarithm.

    front: densities and accuracies, by rising density.  None outside of it.
    """
    if not front or not front[0][0] <= density <= front[-1][0]:
        return None
    densities, accuracies = zip(*front, strict=True)
    return float(np.interp(np.log(density), np.log(densities), accuracies))


def _cells(one: Mapping[str, Any], fronts: Mapping[str, Sequence[tuple[float, float]]]) -> list[str]:
    if not one["runs"]:
        return [one["name"], "", f"{one['weight_decay']:.3g}", "", missing(one), *[""] * (len(HEAD) - 5)]
    return [
        one["name"],
        f"{one['learning_rate']:.3g}",
        f"{one['weight_decay']:.3g}",
        str(one["epochs"]),
        f"{100 * one['accuracy']:.2f}",
        between(one, "lowest", "highest"),
        f"{100 * one['density']:.2f}",
        between(one, "sparsest", "densest"),
        *("" if one["name"] == name else _beside(one, front) for name, front in fronts.items()),
        seeds(one),
    ]


def _beside(one: Mapping[str, Any], front: Sequence[tuple[float, float]]) -> str:
    there = on_front(front, one["density"])
    return "" if there is None else f"{100 * (one['accuracy'] - there):+.2f}"
