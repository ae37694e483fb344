"""What the FCN has to show on one GPU in under ten minutes: ceilings, ways of running seeds, and all rows.

On a lent machine, with the MNIST files carried there, and packed as such a machine gives back just a few files:

    python experiments/benchmarks/gpu.py --data-dir carry/mnist --out results
    tar czf results.tgz --exclude=masks results

Every part is printed as it ends, and OUT/gpu.json is complete after each.  A row that would not end before --minutes
is left out as a whole; the same command again trains just what is missing.  The rows are ordinary runs in OUT/runs:
`experiments/table.py` and `experiments/publish.py` read them.  On a CPU, try it with --tiny.
"""

import dataclasses
import math
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ssm.errors import UserError
from ssm.program import run_program

WAYS_SHARE = 0.25  # of the clock: the rows matter more than the last of the timings
MARGIN = 1.1  # on a row's estimate: its last epochs may be slower than the first ones
TINY_IMAGES = 1024


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure the FCN on this machine's accelerator (on a CPU, use --tiny)."""

    data_dir: Path | None = None
    """Folder of the MNIST files (default: where train.py looks)."""
    out: Path = Path("gpu-results")
    """Folder for gpu.json and the runs."""
    minutes: float = 8.0
    """Time after which no further part is begun, nor a row that would not end within it."""
    seeds: int | None = None
    """Seeds of every row (default: 50, with --tiny 2)."""
    tiny: bool = False
    """One epoch of the first 1,024 images, small ceilings and a few rows, to try the script on a CPU."""


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

# float32 must mean float32: by default an accelerator rounds the operands of its products, to TF32 on a GPU.
MATMUL = {"float32": "highest", "TF32": "default", "bfloat16": "default"}
# Names in MATMUL, and loops.
WAYS = (("float32", "vmap"), ("bfloat16", "vmap"), ("float32", "map"), ("TF32", "vmap"), ("bfloat16", "map"))


class Bench:
    """The clock, the figures so far, and the file that holds them."""

    def __init__(self, options: Options, seeds: int, started: float) -> None:
        self.options, self.seeds, self.started = options, seeds, started
        self.runs = options.out / ("tiny-runs" if options.tiny else "runs")  # real results stay among themselves
        self.failed = 0
        # By precision, of the rows' own way: seconds per seed and epoch, and those that come once.
        self.pace: dict[str, tuple[float, float]] = {}
        self.figures: dict[str, Any] = {"seeds": seeds, "minutes": options.minutes, "tiny": options.tiny}

    def left(self) -> float:
        """Return the seconds until the clock says stop."""
        return self.options.minutes * 60 - (time.perf_counter() - self.started)

    def put(self, part: str, name: str, value: Any, text: str = "") -> None:
        """Record and print one figure."""
        from ssm.files import write_json

        self.figures.setdefault(part, {})[name] = value
        print(f"{part:14s} {name:32s} {text or value}", flush=True)
        try:
            write_json(self.options.out / "gpu.json", self.figures)
        except OSError as error:
            raise UserError(f"{self.options.out} cannot be written: {error.strerror or error}") from error

    def attempt(self, part: str, name: str, do: Callable[[], tuple[Any, str]]) -> None:
        """Record what a function returns, or that the device refused it: the other parts are still wanted."""
        import jax

        try:
            value, text = do()
        except jax.errors.JaxRuntimeError as error:
            self.failed += 1
            value = text = f"failed: {str(error).splitlines()[0]}"
        self.put(part, name, value, text)


def facts(bench: Bench) -> None:
    """Record the device, its memory, the versions, and the user's precision, which the parts below don't use."""
    import jax

    from ssm.devices import environment

    device = jax.devices()[0]
    memory = (device.memory_stats() or {}).get("bytes_limit")  # what JAX may take of it; a CPU doesn't say
    more = {"memory_bytes": memory, "compute_capability": getattr(device, "compute_capability", None)}
    more["jax_default_matmul_precision"] = jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
    for name, value in environment(**more).items():
        bench.put("environment", name, value)


def best_seconds(function: Callable[[], Any], repeats: int) -> float:
    """Return the shortest mean time of ten calls; a first one that may compile isn't counted."""
    import jax

    jax.block_until_ready(function())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(9):  # queued, so that launching one hides behind the one before
            function()
        jax.block_until_ready(function())
        times.append((time.perf_counter() - start) / 10)
    return min(times)


def ceilings(bench: Bench) -> None:
    """Measure what bounds everything: the rates of large matrix products, and of reading and writing memory."""
    import jax
    import jax.numpy as jnp

    size, elements = (256, 2**20) if bench.options.tiny else (8192, 2**28)
    values = jax.random.normal(jax.random.key(0), (size, size))  # products of ones need less power, and run faster

    def product(name: str) -> tuple[float, str]:
        x = values.astype(jnp.bfloat16 if name == "bfloat16" else jnp.float32)
        multiply = jax.jit(lambda x: jnp.matmul(x, x, precision=MATMUL[name]))
        rate = 2 * size**3 / best_seconds(lambda: multiply(x), 3) / 1e12
        return rate, f"{rate:.2f} TFLOP/s"

    def copy() -> tuple[float, str]:
        x = jnp.ones(elements)
        scale = jax.jit(lambda x: x * 1.5)
        rate = 2 * x.nbytes / best_seconds(lambda: scale(x), 3) / 1e9
        return rate, f"{rate:.0f} GB/s"

    for name in MATMUL:
        bench.attempt("tflops", name, partial(product, name))
    bench.attempt("gigabytes_per_s", "read and write", copy)


def settings(row: Row, dataset, tiny: bool):
    """Return a row's resolved configuration."""
    from ssm.config import resolve

    overrides = {"init": row.init, "precision": row.precision} | ({"epochs": 1, "batch_size": 32} if tiny else {})
    named = {"model": "fcn", "method": row.method, "preset": row.preset, "dataset": dataset.name}
    return resolve(**named, samples=len(dataset.train_labels), overrides=overrides)


def time_way(bench: Bench, dataset, name: str, loop: str) -> tuple[Any, str]:
    """Time the ELUS row in one precision and way: seconds per epoch and seed, and what comes once, compilation."""
    import jax

    from ssm.devices import seed_loop
    from ssm.train import Progress, make_trainer, train

    told: list[Progress] = []
    row = Row("", preset="default", precision="float32" if name == "TF32" else name)
    config = dataclasses.replace(settings(row, dataset, bench.options.tiny), epochs=2 if bench.options.tiny else 3)
    start = time.perf_counter()
    with jax.default_matmul_precision(MATMUL[name]):
        trainer = make_trainer(config, dataset, loop=loop)  # type: ignore[arg-type]
        train(trainer, range(bench.seeds), told.append)
    total, shortest = time.perf_counter() - start, min(one.seconds for one in told[1:])
    pace, once = shortest / bench.seeds, max(total - shortest * len(told), 0.0)
    if loop == seed_loop() and name != "TF32":
        bench.pace[name] = (pace, once)
    figure = {"seconds": pace, "compiling": once, "matmul_precision": MATMUL[name]}
    return figure, f"{pace:.4f} s per epoch and seed, compiling {once:.1f} s"


def ways(bench: Bench, dataset) -> None:
    """Time the ELUS row for both ways of running seeds, in float32, bfloat16, and what float32 is by default."""
    import jax

    from ssm.devices import seed_loop

    stop = bench.left() - WAYS_SHARE * 60 * bench.options.minutes
    # The rows' own way first: their estimates come from it.
    for name, loop in sorted(WAYS, key=lambda way: way[1] != seed_loop()):
        if name == "TF32" and jax.default_backend() == "cpu":
            continue  # it has just one float32
        if bench.options.tiny and name == "bfloat16" and loop != seed_loop():
            continue
        if bench.left() < max(stop, 0):
            bench.put("ways", f"{name}, {loop}", "left out: no time")
            continue
        bench.attempt("ways", f"{name}, {loop}", partial(time_way, bench, dataset, name, loop))


def train_row(bench: Bench, dataset, row: Row, config, missing: int) -> tuple[Any, str]:
    """Train a row's missing seeds as an ordinary run, and return its figures, with the paper's in the text."""
    import jax

    from ssm.run import run_seeds
    from ssm.tables import compare, read_paper

    start = time.perf_counter()
    with jax.default_matmul_precision(MATMUL[row.precision]):
        run = run_seeds(config, dataset, range(bench.seeds), out=bench.runs)
    seconds = time.perf_counter() - start
    summary = run.summary()
    assert summary is not None
    median = summary["seconds_per_epoch_and_seed"]["median"]
    if missing and median is not None:  # a row slower than those before makes the later estimates careful
        pace, once = bench.pace[row.precision]
        bench.pace[row.precision] = max(pace, median), max(once, seconds - median * missing * config.epochs)
    figure = {"trained": missing, "seconds": seconds, "seconds_per_epoch_and_seed": median}
    figure |= {"folder": run.folder.name, "runs": summary["runs"], "failed": len(summary["failed"])}
    figure["matmul_precision"] = MATMUL[row.precision]  # the run's own files don't say
    record = compare(summary, read_paper(Path(__file__).parents[1] / "paper.json"))
    text = f"{summary['runs']} seeds"
    for key, ours in (("accuracy", "test_accuracy"), ("remaining", "remaining_weights")):
        figure[ours] = {name: summary[ours][name] for name in ("mean", "q05", "q95", "std")}
        mean = record[f"{key}_mean"]
        text += f", {key} {'unknown' if mean is None else f'{mean:.2f} %'} (paper {record[f'paper_{key}_mean']})"
    return figure, f"{text}, {seconds:.0f} s"


def rows(bench: Bench, dataset) -> None:
    """Train the rows, each as a whole or not at all; the timings so far say whether it fits."""
    from ssm.results import read_summary, run_name

    for row in ROWS[:: 8 if bench.options.tiny else 1]:
        config, missing = settings(row, dataset, bench.options.tiny), bench.seeds
        folder = bench.runs / run_name(config.as_dict())
        if (folder / "summary.json").exists():
            before = read_summary(folder)
            missing = max(0, missing - before["runs"] - len(before["failed"]))
        pace, once = bench.pace.get(row.precision, (math.inf, math.inf))  # inf: not even timed
        needed = MARGIN * pace * missing * config.epochs + once if missing else -math.inf
        if needed > bench.left():
            needs = "its way has no timing" if math.isinf(needed) else f"needs {needed:.0f} s"
            bench.put("rows", row.name, f"left out: {needs}, {bench.left():.0f} s are left")
            continue
        bench.attempt("rows", row.name, partial(train_row, bench, dataset, row, config, missing))


def first_images(dataset, count: int):
    """Return a data set of the first images alone, which says so in its source."""
    few = {name: value[:count] for name, value in vars(dataset).items() if name.endswith(("_images", "_labels"))}
    return dataclasses.replace(dataset, source=f"{dataset.source}, its first {count} images", **few)


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds if options.seeds is not None else 2 if options.tiny else 50
    if seeds < 1 or not options.minutes > 0:
        raise UserError("--seeds and --minutes must be above 0.")
    import jax

    from ssm import data

    dataset = data.load("mnist", data_dir=options.data_dir)
    if options.tiny:
        dataset = first_images(dataset, TINY_IMAGES)
    bench = Bench(options, seeds, started)
    # Rows that differ in numbers alone are one program: it is compiled once, and never before the clock runs.
    with tempfile.TemporaryDirectory() as cache:
        jax.config.update("jax_compilation_cache_dir", cache)
        facts(bench)
        ceilings(bench)
        ways(bench, dataset)
        rows(bench, dataset)
    bench.put("total", "seconds", time.perf_counter() - started)
    if bench.failed:
        sys.exit(f"gpu.py: {bench.failed} part(s) failed; the others stand")


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
