"""Sweeps: configurations that differ in some options, as few compiled programs as can be, and what came of them."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ssm import thresholds
from ssm.runs.statistics import interval
from ssm.errors import LeftOut, UserError
from ssm.recipes.config import Config
from ssm.runs.folder import read_summary
from ssm.runs.names import run_folder

TRACED = ("learning_rate", "weight_decay", "schedule", "decay_rate", "decay_steps", "staircase")
TRACED += ("patience", "plateau_factor", "cooldown", "min_delta")
"""Fields of a configuration that are arguments of the compiled program, or used on the host alone."""


def program_key(config: Config) -> tuple[Any, ...]:
    """Return what decides a configuration's compiled program: those of one key are trained together.

    All but the arguments of the program: `TRACED`, and the number of the threshold's rule, unless it is 0, at which the
    step has another form.
    """
    static = {name: value for name, value in dataclasses.asdict(config).items() if name not in TRACED}
    rule = thresholds.parse(static.pop("threshold"))
    return (*sorted(static.items()), type(rule).__name__, thresholds.parameter(rule) > 0)


def programs(configs: Sequence[Config]) -> list[list[Config]]:
    """Return configurations by program, in the order in which they come; one that comes twice is there once."""
    found: dict[tuple[Any, ...], list[Config]] = {}
    for config in dict.fromkeys(configs):
        found.setdefault(program_key(config), []).append(config)
    return list(found.values())


def records(
    points: Sequence[Mapping[str, Any]], configs: Sequence[Config], out: Path, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    """Return a sweep's long-format table: one row per point and seed that is finished.

    The options that were varied, the seed, its test_accuracy and remaining_weights (shares; None where it was set
    aside), why it was, and the run's folder.  A damaged run is left out, with a warning (LeftOut).
    """
    rows: list[dict[str, Any]] = []
    for point, config in zip(points, configs, strict=True):
        folder = run_folder(out, config.as_dict())
        if not (folder / "summary.json").exists():
            continue
        try:
            summary = read_summary(folder)
        except UserError as error:
            warnings.warn(f"{folder} is left out: {error}", LeftOut, stacklevel=2)
            continue
        failed = {entry["seed"]: entry.get("reason") or "it turned non-finite" for entry in summary["failed"]}
        for seed in seeds:
            values = {name: summary[name]["values"].get(str(seed)) for name in ("test_accuracy", "remaining_weights")}
            if seed in failed or None not in values.values():
                rows.append({**point, "seed": seed, **values, "failed": failed.get(seed, ""), "run": folder.name})
    return rows


def by_point(rows: Sequence[Mapping[str, Any]], varied: Sequence[str]) -> list[dict[str, Any]]:
    """Return the means and 5 % and 95 % quantiles of every point that has a seed, the most accurate first.

    `front` says whether no other point is both at least as accurate and as sparse, and better in one of them.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if not row["failed"]:
            groups.setdefault(tuple(row[name] for name in varied), []).append(row)
    points: list[dict[str, Any]] = []
    for values, group in groups.items():
        point: dict[str, Any] = {**dict(zip(varied, values, strict=True)), "seeds": len(group), "run": group[0]["run"]}
        for name in ("test_accuracy", "remaining_weights"):
            found = interval([row[name] for row in group])
            point |= {name: found.mean, f"{name}_q05": found.q05, f"{name}_q95": found.q95}
        points.append(point)
    for point, on_front in zip(points, pareto(points), strict=True):
        point["front"] = on_front
    return sorted(points, key=lambda point: -point["test_accuracy"])


def pareto(points: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Say of each point whether none is at least as accurate and as sparse, and better in one of the two."""
    accuracy, remaining = (
        np.array([point[name] for point in points]) for name in ("test_accuracy", "remaining_weights")
    )
    no_worse = (accuracy[:, None] >= accuracy) & (remaining[:, None] <= remaining)
    better = (accuracy[:, None] > accuracy) | (remaining[:, None] < remaining)
    return [not beaten for beaten in np.any(no_worse & better, axis=0).tolist()]


def grid(varied: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return every combination of the options' values, the last option's values changing the fastest."""
    if empty := next((name for name, values in varied.items() if not values), None):
        raise UserError(f"--vary {empty}= names no value")
    points: list[dict[str, Any]] = [{}]
    for name, values in varied.items():
        points = [{**point, name: value} for point in points for value in values]
    return points
