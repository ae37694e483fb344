"""Sweeps: configurations that differ in some options, as few compiled programs as can be, and what came of them."""

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ssm import thresholds
from ssm.runs import checkpoint
from ssm.recipes.config import Config
from ssm.ops.convolution import Form
from ssm.data import Dataset
from ssm.training.devices import seed_loop
from ssm.training.epoch import SeedLoop
from ssm.errors import UserError
from ssm.runs.signals import Interrupted, watched
from ssm.runs.lock import held
from ssm.runs.folder import Run, read_summary
from ssm.runs.names import run_folder
from ssm.runs.run import (
    GRACE,
    Conduct,
    count_weights_of,
    described_run,
    finished_keys,
    how_run,
    ready,
    take_up,
    train_groups,
)
from ssm.statistics import interval
from ssm.training.loop import TRACED, Member


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


def run_together(
    configs: Sequence[Config],
    dataset: Dataset,
    seeds: Sequence[int],
    *,
    out: Path,
    folder: Path,
    group: int | None = None,
    loop: SeedLoop | None = None,
    form: Form = "auto",
    conduct: Conduct | None = None,
) -> None:
    """Train what is missing of the seeds of configurations of one program, together, each into its own run's folder.

    `folder` is the sweep's, with the journal and the checkpoints.  The rest, and what it raises, is as in `run_seeds`.
    """
    conduct, loop = conduct or Conduct(), loop or seed_loop(configs[0].model)
    where = how_run(configs[0], dataset, loop, form)
    runs: dict[str, Run] = {}
    members: list[Member] = []
    with ExitStack() as stack:
        stack.enter_context(held(folder))
        if conduct.fresh:
            shutil.rmtree(folder / checkpoint.FOLDER, ignore_errors=True)
        for litter in folder.rglob(".*.tmp"):
            litter.unlink(missing_ok=True)
        for config in configs:
            run = described_run(config, where, dataset, out)
            stack.enter_context(held(run.folder))
            runs[run.name] = run
            members += [(config, seed) for seed in take_up(run, seeds, conduct)]
        checkpoint.remove_finished(folder / checkpoint.FOLDER, finished_keys(runs.values()))
        if not members:
            return
        # All at once: a group of another size would be compiled anew, and checkpoints are what a crash leaves.
        trainer, group = ready(configs[0], dataset, len(members), group=group, loop=loop, form=form, together=True)
        weights = count_weights_of(trainer, dataset)
        runs = {name: dataclasses.replace(run, weights=weights) for name, run in runs.items()}
        with watched(GRACE) as interrupts:
            train_groups(trainer, members, runs, folder, group, where["data"], conduct, interrupts)
            if interrupts.caught is not None:  # in its last epochs: the sweep's other programs must not begin
                raise Interrupted(interrupts.caught, "stopped after a program whose points are finished")


def records(
    points: Sequence[Mapping[str, Any]], configs: Sequence[Config], out: Path, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    """Return a sweep's long-format table: one row per point and seed that is finished.

    The options that were varied, the seed, its test_accuracy and remaining_weights (shares; None where it was set
    aside), why it was, and the run's folder.
    """
    rows: list[dict[str, Any]] = []
    for point, config in zip(points, configs, strict=True):
        folder = run_folder(out, config.as_dict())
        if not (folder / "summary.json").exists():
            continue
        summary = read_summary(folder)
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
