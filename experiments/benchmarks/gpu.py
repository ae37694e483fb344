"""What the FCN has to show on one GPU in under ten minutes: ceilings, ways of running seeds, and all rows.

On a lent machine: `python experiments/benchmarks/gpu.py --data-dir DIR --out DIR`.  Its table is printed as it goes,
and the JSON file is complete after every part.  A row that would not end before --minutes is left out as a whole.
The rows are ordinary runs under OUT/runs: `experiments/table.py` and `publish.py` read them.
"""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssm.errors import UserError
from ssm.program import run_program


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure the FCN on this machine's accelerator (on a CPU, use --tiny)."""

    data_dir: Path | None = None
    """Folder of the MNIST files (default: where train.py looks)."""
    out: Path = Path("gpu-results")
    """Folder for gpu.json and the runs."""
    minutes: float = 8.0
    """Time after which no further part is begun that would not end within it."""
    seeds: int = 50
    """Seeds of every row."""
    tiny: bool = False
    """Two seeds, one epoch, small ceilings and every fourth row, to try the script on a CPU."""


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


class Bench:
    """The clock, the figures so far, and the file that holds them."""

    def __init__(self, options: Options) -> None:
        from ssm.devices import environment

        self.options = options
        self.started = time.perf_counter()
        self.figures: dict[str, Any] = {"environment": environment(), "seeds": options.seeds}
        self.save()

    def left(self) -> float:
        """Return the seconds until the clock says stop."""
        return self.options.minutes * 60 - (time.perf_counter() - self.started)

    def put(self, part: str, name: str, value: Any) -> None:
        """Record and print one figure."""
        self.figures.setdefault(part, {})[name] = value
        print(f"{part:12s} {name:34s} {value}", flush=True)
        self.save()

    def save(self) -> None:
        from ssm.files import write_json

        write_json(self.options.out / "gpu.json", self.figures)


def best_seconds(function: Callable[[], Any], repeats: int) -> float:
    """Return the shortest time of a call, its result awaited; a first call that may compile isn't counted."""
    import jax

    jax.block_until_ready(function())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function())
        times.append(time.perf_counter() - start)
    return min(times)


def ceilings(bench: Bench) -> None:
    """Measure what bounds everything: the rates of large matrix products, and of reading and writing memory."""
    import jax
    import jax.numpy as jnp

    size, repeats = (256, 2) if bench.options.tiny else (8192, 5)
    for name, dtype, precision in (
        ("float32", jnp.float32, "highest"),
        ("TF32 (default precision)", jnp.float32, "default"),
        ("bfloat16", jnp.bfloat16, "default"),
    ):
        x = jnp.ones((size, size), dtype)
        multiply = jax.jit(lambda x, precision=precision: jnp.matmul(x, x, precision=precision))
        seconds = best_seconds(lambda x=x, multiply=multiply: multiply(x), repeats)
        bench.put("TFLOP/s", name, 2 * size**3 / seconds / 1e12)
    x = jnp.ones(size * size)
    copy = jax.jit(lambda x: x * 1.5)
    bench.put("GB/s", "read and write", 2 * x.nbytes / best_seconds(lambda: copy(x), 4 * repeats) / 1e9)


def settings(row: Row, dataset, options: Options):
    """Return a row's resolved configuration."""
    from ssm.config import resolve

    return resolve(
        model="fcn",
        method=row.method,
        preset=row.preset,
        dataset=dataset.name,
        samples=len(dataset.train_labels),
        overrides={
            "init": row.init,
            "precision": row.precision,
            "epochs": 1 if options.tiny else None,
            "batch_size": 32 if options.tiny else None,
        },
    )


def epoch_seconds(config, dataset, seeds: int, loop: str) -> tuple[float, float]:
    """Return the seconds of one epoch of all seeds, the shortest of three, and those of compiling it."""
    from ssm.train import Progress, make_trainer, train

    told: list[Progress] = []
    start = time.perf_counter()
    trainer = make_trainer(config, dataset, loop=loop)  # type: ignore[arg-type]
    train(trainer._replace(config=dataclasses.replace(config, epochs=4)), range(seeds), told.append)
    total = time.perf_counter() - start
    shortest = min(one.seconds for one in told[1:])
    return shortest, total - shortest * len(told)


def ways(bench: Bench, dataset) -> None:
    """Time the ELUS row for each way of running seeds and each precision of its products."""
    import jax

    for loop in ("vmap", "map"):
        for name, precision, matmul in (
            ("float32", "float32", "highest"),
            ("TF32", "float32", "default"),
            ("bfloat16", "bfloat16", "highest"),
        ):
            if bench.options.tiny and name == "TF32":
                continue  # a CPU has just one float32
            if bench.left() < 60 and not bench.options.tiny:
                bench.put("s/epoch/seed", f"{name}, {loop}", "left out: no time")
                continue
            config = settings(Row("", preset="default", precision=precision), dataset, bench.options)
            with jax.default_matmul_precision(matmul):
                seconds, compiling = epoch_seconds(config, dataset, bench.options.seeds, loop)
            figure = {"seconds": seconds / bench.options.seeds, "compiling": compiling}
            bench.put("s/epoch/seed", f"{name}, {loop}", figure)


def rows(bench: Bench, dataset) -> None:
    """Train the rows, each as a whole or not at all; the epochs timed before say whether it fits."""
    import jax

    from ssm.devices import seed_loop
    from ssm.run import run_seeds

    for row in ROWS[:: 4 if bench.options.tiny else 1]:
        config = settings(row, dataset, bench.options)
        timed = bench.figures["s/epoch/seed"].get(f"{row.precision}, {seed_loop()}")
        if not bench.options.tiny:
            fits = isinstance(timed, dict)  # else even timing it didn't fit
            needed = timed["seconds"] * bench.options.seeds * config.epochs + timed["compiling"] if fits else 0.0
            if not fits or needed > bench.left():
                bench.put("rows", row.name, f"left out: needs {needed:.0f} s, {bench.left():.0f} s are left")
                continue
        # float32 must mean float32: on an accelerator it would be TF32.
        with jax.default_matmul_precision("highest"):
            start = time.perf_counter()
            run = run_seeds(config, dataset, range(bench.options.seeds), out=bench.options.out / "runs")
        summary = run.summary()
        assert summary is not None
        figure = {"seconds": round(time.perf_counter() - start, 1), "runs": summary["runs"], "folder": run.folder.name}
        for name in ("test_accuracy", "remaining_weights"):
            figure[name] = {key: summary[name][key] for key in ("mean", "q05", "q95")}
        bench.put("rows", row.name, figure)


def main(options: Options) -> None:
    from ssm import data

    if options.seeds < 1 or options.minutes <= 0:
        raise UserError("--seeds and --minutes must be above 0.")
    if options.tiny:
        options = dataclasses.replace(options, seeds=2)
    dataset = data.load("mnist", data_dir=options.data_dir)
    try:
        bench = Bench(options)
    except OSError as error:
        raise UserError(f"{options.out} cannot be written: {error.strerror or error}") from error
    print(bench.figures["environment"], flush=True)
    ceilings(bench)
    ways(bench, dataset)
    rows(bench, dataset)
    bench.put("total", "seconds", round(time.perf_counter() - bench.started, 1))


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
