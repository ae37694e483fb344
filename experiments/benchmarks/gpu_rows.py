"""Of gpu.py: the FCN on MNIST, its rows, and the ways of running their seeds."""

import dataclasses
import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
from gpu_bench import MARGIN, MATMUL, Bench

from paper.tables import compare, read_paper, with_config
from ssm.recipes.config import resolve
from ssm.runs.folder import read_summary, run_name
from ssm.runs.run import MATMUL_PRECISION, run_seeds
from ssm.training.devices import seed_loop
from ssm.training.loop import Progress, make_trainer, train

WAY_SECONDS = 30.0  # to be free for a way: compiling it, and three epochs
TARGET, FLOOR = 15, 4  # seconds of the first row's epochs on an H100: the mark, and what its products alone take


@dataclass(frozen=True)
class Row:
    """One row of the paper's table, or of ours, by the options of train.py."""

    name: str
    preset: str = "paper"
    method: str = "signed"
    init: str = "elus"
    precision: str = "float32"


ROWS = (  # the most wanted first: the clock may leave out the last ones
    Row("signed elus, default", preset="default"),
    Row("signed elus, paper"),
    Row("signed he, paper", init="he"),
    Row("signed xavier, paper", init="xavier"),
    Row("binary elus, paper", method="binary"),
    Row("signed elus, default, bfloat16", preset="default", precision="bfloat16"),
    Row("baseline elu, paper", method="baseline", init="elu"),
    Row("baseline he, paper", method="baseline", init="he"),
    Row("baseline xavier, paper", method="baseline", init="xavier"),
)

# Names in MATMUL, and loops.
WAYS = (("bfloat16", "vmap"), ("float32", "map"), ("float32", "vmap"), ("TF32", "vmap"), ("bfloat16", "map"))


def first(bench: Bench, dataset) -> None:
    """Time the rows' own way in float32, which tells how long a row takes, and train the first row."""
    if dataset is None:
        bench.put("rows", ROWS[0].name, "left out: no MNIST")
        return
    way(bench, dataset, "float32", seed_loop("fcn"))
    row(bench, dataset, ROWS[0])


def rest(bench: Bench, dataset) -> None:
    """Time the other ways, and train the other rows."""
    if dataset is None:
        return
    own = seed_loop("fcn")
    ways = [(name, loop) for name, loop in WAYS if (name, loop) != ("float32", own)]
    for name, loop in sorted(ways, key=lambda one: one[1] != own):  # the rows' own way first: estimates come from it
        if name == "TF32" and jax.default_backend() == "cpu":
            continue  # it has just one float32
        if not (bench.tiny and (name, loop) != ("bfloat16", own)):
            way(bench, dataset, name, loop)
    for one in ROWS[8 if bench.tiny else 1 :]:
        row(bench, dataset, one)


def settings(row: Row, dataset, tiny: bool):
    """Return a row's resolved configuration."""
    overrides = {"init": row.init, "precision": row.precision} | ({"epochs": 1, "batch_size": 32} if tiny else {})
    named = {"model": "fcn", "method": row.method, "preset": row.preset, "dataset": dataset.name}
    return resolve(**named, samples=len(dataset.train_labels), overrides=overrides)


def way(bench: Bench, dataset, name: str, loop: str) -> None:
    """Time the ELUS row in one precision and way: seconds per epoch and seed, and what comes once, compilation."""

    def measure() -> tuple[Any, str]:
        told: list[Progress] = []
        row = Row("", preset="default", precision="float32" if name == "TF32" else name)
        config = dataclasses.replace(settings(row, dataset, bench.tiny), epochs=2 if bench.tiny else 3)
        start = time.perf_counter()
        with jax.default_matmul_precision(MATMUL[name]):
            trainer = make_trainer(config, dataset, loop=loop)  # type: ignore[arg-type]
            train(trainer, range(bench.seeds), told.append)
        total, shortest = time.perf_counter() - start, min(one.seconds for one in told[1:])
        pace, once = shortest / bench.seeds, max(total - shortest * len(told), 0.0)
        figure = {"seconds": pace, "compiling": once, "matmul_precision": MATMUL[name]}
        return figure, f"{pace:.4f} s per epoch and seed, compiling {once:.1f} s"

    bench.attempt("ways", f"{name}, {loop}", measure, needs=WAY_SECONDS)


def pace(bench: Bench, precision: str) -> tuple[float, float]:
    """Return what the timings say of a row: seconds per epoch and seed, and those that come once; inf, if nothing.

    A row slower than its way was makes the later estimates careful.
    """
    timed = bench.figures.get("ways", {}).get(f"{precision}, {seed_loop('fcn')}")
    if not isinstance(timed, dict):
        return math.inf, math.inf
    done = [row for row in bench.figures.get("rows", {}).values() if isinstance(row, dict) and row["trained"]]
    done = [row for row in done if row["precision"] == precision and row["seconds_per_epoch_and_seed"] is not None]
    slowest = max([timed["seconds"], *(row["seconds_per_epoch_and_seed"] for row in done)])
    return slowest, max([timed["compiling"], *(row["seconds"] - row["epochs_seconds"] for row in done)])


def row(bench: Bench, dataset, row: Row) -> None:
    """Train a row as a whole or not at all; the timings so far say whether it fits."""
    config, missing = settings(row, dataset, bench.tiny), bench.seeds
    folder = bench.runs / run_name(config.as_dict())
    if (folder / "summary.json").exists():
        before = read_summary(folder)
        missing = max(0, missing - before["runs"] - len(before["failed"]))
    each, once = pace(bench, row.precision)
    needs = MARGIN * each * missing * config.epochs + once if missing else -math.inf
    bench.attempt("rows", row.name, partial(train_row, bench, dataset, config, missing), needs=needs)


def train_row(bench: Bench, dataset, config, missing: int) -> tuple[Any, str]:
    """Train a row's missing seeds as an ordinary run, and return its figures."""
    start = time.perf_counter()
    run = run_seeds(config, dataset, range(bench.seeds), out=bench.runs)
    figure, text = result(run, config, missing, time.perf_counter() - start)
    if missing * config.epochs == 5000 and config.model == "fcn":
        text += f"; its epochs {figure['epochs_seconds']:.1f} s (target {TARGET} s on an H100, floor about {FLOOR} s)"
    return figure, text


def result(run, config, trained: int, seconds: float) -> tuple[dict[str, Any], str]:
    """Return a run's figures, and a line with the paper's beside them."""
    summary = run.summary()
    assert summary is not None
    median = summary["seconds_per_epoch_and_seed"]["median"]
    figure = {"trained": trained, "seconds": seconds, "seconds_per_epoch_and_seed": median}
    figure |= {"epochs_seconds": (median or 0.0) * trained * config.epochs}
    figure |= {"folder": run.folder.name, "runs": summary["runs"], "failed": len(summary["failed"])}
    figure |= {"precision": config.precision, "matmul_precision": MATMUL_PRECISION}
    paper = read_paper(Path(__file__).parents[1] / "paper" / "paper.json")
    record = compare(with_config(summary, config.as_dict()), paper)
    text = f"{summary['runs']} seeds"
    for key, ours in (("accuracy", "test_accuracy"), ("remaining", "remaining_weights")):
        figure[ours] = {name: summary[ours][name] for name in ("mean", "q05", "q95", "std")}
        mean = record[f"{key}_mean"]
        text += f", {key} {'unknown' if mean is None else f'{mean:.2f} %'} (paper {record[f'paper_{key}_mean']})"
    return figure, f"{text}, {seconds:.0f} s"
