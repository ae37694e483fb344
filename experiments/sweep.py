"""Train every combination of some options' values; ends with one table, its best rows, and a plot.

- python experiments/sweep.py --model=fcn --vary learning_rate=0.01,0.05 --vary weight_decay=1e-4,5e-4 --seeds=3
- python experiments/sweep.py --model=conv2 --point threshold=0.01,factor=1 --point threshold=0.02,factor=1.2
- python experiments/sweep.py --model=fcn --vary init=elus,he --submit=slurm --slurm partition=gpu --slurm time=60

Rates, their schedules and a threshold's number are arguments of one compiled program, in which all seeds and points are
trained together; other options make a program each.  What is finished is skipped, what was stopped is resumed.
"""

import csv
import io
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from options import OVERRIDES, Options, configured, job_of, prepare, run_options, with_method
from ssm.errors import UserError
from ssm.runs.program import command, run_program

MOST_MINUTES = 24 * 60
VARIED = OVERRIDES | {"model", "method", "preset", "dataset"}


@dataclass(frozen=True, kw_only=True)
class Sweep(Options):
    """Train all combinations of some options' values, with the other options as train.py has them."""

    vary: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """NAME=VALUE,VALUE,...: an option of train.py and its values; with several, every combination is trained."""
    point: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """NAME=VALUE,NAME=VALUE,...: one combination by itself, instead of --vary."""
    best: int = 10
    """How many of the best rows are printed."""
    submit: Literal["no", "slurm", "local"] = "no"
    """Run each program as a job of an array by submitit, on Slurm or on this machine, and return at once; the same
    command without it then prints the table."""
    slurm: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """NAME=VALUE: an option of sbatch for --submit=slurm, time=60 (minutes; a day by itself) or partition=gpu, say."""
    only: Annotated[int | None, tyro.conf.arg(metavar="I", help_behavior_hint="")] = None
    """Train the program of this number alone, from 0; what a job of the array does."""


def typed(name: str, text: str) -> Any:
    """Return an option's value as train.py reads it, which ends the program for a wrong one; UserError: no option."""
    name = name.strip().replace("-", "_")
    if name not in VARIED:
        raise UserError(f"--vary {name}: no option that can be varied; choose from: {', '.join(sorted(VARIED))}.")
    return getattr(tyro.cli(Options, args=[f"--{name.replace('_', '-')}={text.strip()}"]), name)


def pairs(text: str) -> list[tuple[str, str]]:
    """Return the names and values of a text NAME=VALUE,NAME=VALUE."""
    found = [part.partition("=") for part in text.split(",")]
    if wrong := next((name for name, sign, _ in found if not sign), None):
        raise UserError(f"cannot read {wrong!r} in {text!r}: write NAME=VALUE.")
    return [(name.strip().replace("-", "_"), value) for name, _, value in found]


def points_of(sweep: Sweep) -> list[dict[str, Any]]:
    """Return the combinations that the options name; raises UserError if they name none, or both ways at once."""
    from ssm.runs.sweep import grid

    if bool(sweep.vary) == bool(sweep.point):
        raise UserError(
            "give either --vary NAME=VALUE,VALUE or --point NAME=VALUE,NAME=VALUE: all combinations, or one each."
        )
    if sweep.point:
        points = [{name: typed(name, value) for name, value in pairs(text)} for text in sweep.point]
        if any(point.keys() != points[0].keys() for point in points):
            raise UserError("every --point must name the same options.")
        return points
    split = [text.partition("=") for text in sweep.vary]
    varied = {name.strip().replace("-", "_"): values for name, _, values in split}
    if len(varied) < len(split):
        raise UserError("--vary names an option twice.")
    return grid(
        {name: [typed(name, value) for value in filter(None, values.split(","))] for name, values in varied.items()}
    )


def main(sweep: Sweep) -> None:
    from ssm.recipes.config import parse_seeds

    if sweep.distributed or sweep.dry_run:
        raise UserError("--distributed and --dry-run are train.py's; a sweep is shared by --submit=slurm.")
    seeds, points = parse_seeds(sweep.seeds), points_of(sweep)
    prepare(sweep)
    from ssm.recipes.presets import named_settings
    from ssm.runs.names import config_hash
    from ssm.runs.run import run_jobs
    from ssm.runs.sweep import programs

    datasets: dict[Any, Any] = {}
    configs = []
    for point in points:
        options = replace(sweep, **point)
        config, dataset = configured(options, datasets.get((options.model, options.dataset)))
        same = datasets.get(config.dataset, dataset)
        if same is not dataset and same.fingerprint() != dataset.fingerprint():
            raise UserError(
                f"{same.source} and {dataset.source} are both called {config.dataset}, and a run is known by that: "
                "rename one."
            )
        datasets[options.model, options.dataset] = datasets[config.dataset] = dataset
        configs.append(config)
    parts = programs(configs)
    folder = sweep.out / f"sweep-{config_hash({'points': [named_settings(config.as_dict()) for config in configs]})}"
    print(f"sweep: {len(points)} points x {len(seeds)} seeds in {len(parts)} programs, {folder}", flush=True)
    if sweep.submit != "no":
        submit(sweep, folder, len(parts))
        return
    if sweep.only is not None and not 0 <= sweep.only < len(parts):
        raise UserError(f"--only={sweep.only}: the programs have numbers 0 to {len(parts) - 1}.")
    for number, part in enumerate(parts):
        if sweep.only in (None, number):
            own = folder / f"program-{number}"  # jobs of an array must not wait for each other
            jobs = [job_of(sweep, config, datasets[config.dataset]) for config in part]
            run_jobs(jobs, seeds, out=sweep.out, folder=own, options=run_options(sweep))
    if sweep.only is None:
        report(sweep, folder, points, configs, seeds)


def submit(sweep: Sweep, folder: Path, programs: int) -> None:
    """Submit a job for each program, as an array; prints the jobs and what to do then."""
    try:
        import submitit
    except ImportError:
        raise UserError("--submit needs submitit: pip install 'signed-supermask[slurm]'.") from None
    if sweep.fresh:
        raise UserError("--fresh and --submit don't go together: a job that is started again would start over.")
    limits = dict(pair for text in sweep.slurm for pair in pairs(text))
    if not (minutes := limits.pop("time", str(MOST_MINUTES))).isdecimal():
        raise UserError(f"--slurm time={minutes}: give minutes, time=60 say.")
    try:
        executor = submitit.AutoExecutor(folder=folder / "jobs", cluster=sweep.submit)
    except RuntimeError as error:
        raise UserError(f"--submit={sweep.submit}: {error}") from None
    # The program itself has no limit: submitit's own would end a job after minutes.
    executor.update_parameters(name="ssm-sweep", timeout_min=int(minutes))
    if sweep.submit == "slurm":
        executor.update_parameters(slurm_additional_parameters=limits)
    same = command("--submit", "--slurm")
    with executor.batch():  # one array
        jobs = [
            executor.submit(submitit.helpers.CommandFunction([sys.executable, *same[1:], f"--only={number}"]))
            for number in range(programs)
        ]
    print(f"submitted: {', '.join(job.job_id for job in jobs)}\nthen: {shlex.join(same)}")


def report(sweep: Sweep, folder: Path, points: list[dict[str, Any]], configs: Sequence[Any], seeds: list[int]) -> None:
    """Write the table and the plot of what is finished, and print the best rows."""
    from ssm.files import write_atomic
    from ssm.runs.sweep import by_point, records

    rows = records(points, configs, sweep.out, seeds)
    if not rows:
        raise UserError("no point has a finished seed.")
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomic(folder / "results.csv", buffer.getvalue())
    found = by_point(rows, list(points[0]))
    plot(found, folder / "front.png")
    bad = sum(bool(row["failed"]) for row in rows)
    print(f"results: {folder / 'results.csv'}, {folder / 'front.png'}: {len(rows)} rows, {bad} excluded\n")
    print(table(found[: sweep.best], list(points[0])))


def table(found: list[dict[str, Any]], varied: list[str]) -> str:
    """Return the points as lines of text, accuracy and remaining weights in %; * marks the Pareto front."""
    from paper.tables import aligned

    lines = [[*varied, "seeds", "accuracy %", "remaining %", "front", "run"]]
    for point in found:
        figures = [
            "{:.2f} [{:.2f}, {:.2f}]".format(*(100 * point[name + end] for end in ("", "_q05", "_q95")))
            for name in ("test_accuracy", "remaining_weights")
        ]
        own = [f"{point[name]:g}" if isinstance(point[name], float) else str(point[name]) for name in varied]
        lines.append([*own, str(point["seeds"]), *figures, "*" if point["front"] else "", point["run"]])
    return "\n".join(aligned(lines))


def plot(found: list[dict[str, Any]], path: Path) -> None:
    """Draw accuracy against remaining weights, a mark for each point with its 5 % and 95 % quantiles, and the front."""
    from matplotlib.figure import Figure

    from ssm.files import write_atomic

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    names = ("remaining_weights", "test_accuracy")
    for front, colour, mark, label in ((False, "0.6", "o", "others"), (True, "black", "s", "Pareto front")):
        own = sorted((point for point in found if point["front"] is front), key=lambda point: point[names[0]])
        if own:
            x, y = ([100 * point[name] for point in own] for name in names)
            spread = [
                [[abs(100 * (point[name] - point[name + end])) for point in own] for end in ("_q05", "_q95")]
                for name in names
            ]
            axes.errorbar(x, y, spread[1], spread[0], fmt=mark, color=colour, elinewidth=0.7, markersize=4, label=label)
            if front:
                axes.plot(x, y, color="black", linewidth=1)
    axes.set(xlabel="remaining weights (%)", ylabel="test accuracy (%)")
    axes.legend()
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150)
    write_atomic(path, buffer.getvalue())


if __name__ == "__main__":
    run_program(main, with_method(Sweep), description=__doc__, trains=True)
