"""Of gpu.py: the clock, the figures and their file, and the ceilings of the machine."""

import dataclasses
import math
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from ssm.errors import UserError
from ssm.files import plain, read_json, write_json
from ssm.training.devices import environment

MARGIN = 1.1  # on an estimate: the last epochs may be slower than the first ones

# float32 must mean float32: by default an accelerator rounds the operands of its products, to TF32 on a GPU.
# bfloat16 is the configuration's, which rounds operands itself; what else is multiplied is as in an ordinary run.
MATMUL = {"float32": "highest", "TF32": "default", "bfloat16": "highest"}


def reason_to_skip(needs: float, left: float, *, reserve: float = 0.0) -> str | None:
    """Return why a part that needs so many seconds is not begun, or None if it is.

    `reserve` seconds are meant for later parts.  A need of inf is one that nothing tells, -inf none at all.
    """
    if needs + reserve <= left or needs == -math.inf:
        return None
    if math.isinf(needs):
        return f"left out: nothing timed tells how long it takes, {max(left, 0):.0f} s are left"
    others = f", {reserve:.0f} s of them for later parts" if reserve else ""
    return f"left out: needs about {needs:.0f} s, {max(left, 0):.0f} s are left{others}"


def seeds_that_fit(left: float, *, share: float, pace: float, epochs: int, once: float, most: int) -> int:
    """Return how many seeds end within a share of what is left, at `pace` seconds per epoch and seed and `once`.

    One seed may take more than the share, if it ends in time.
    """
    one = MARGIN * pace * epochs
    fitting = math.floor(max(0.0, left * share - once) / one)
    return min(most, fitting or int(once + one <= left))


class Bench:
    """The clock, the figures so far, and the file that holds them."""

    def __init__(self, out: Path, *, minutes: float, seeds: int, tiny: bool, started: float) -> None:
        self.out, self.seconds, self.seeds, self.tiny, self.started = out, minutes * 60, seeds, tiny, started
        self.runs = out / ("tiny-runs" if tiny else "runs")  # real results stay among themselves
        self.failed = 0
        self.memory: float | None = None  # bytes that JAX may take on the device, where it says so
        self.figures: dict[str, Any] = {"seeds": seeds, "minutes": minutes, "tiny": tiny}
        self.before: dict[str, Any] = {}  # the figures of the same command on the same machine, earlier

    def left(self) -> float:
        """Return the seconds until the clock says stop."""
        return self.seconds - (time.perf_counter() - self.started)

    def put(self, part: str, name: str, value: Any, text: str = "") -> None:
        """Record and print one figure."""
        self.figures.setdefault(part, {})[name] = value
        print(f"{part:14s} {name:34s} {text or value}", flush=True)
        try:
            write_json(self.out / "gpu.json", self.figures)
        except OSError as error:
            raise UserError(f"{self.out} cannot be written: {error.strerror or error}") from error

    def attempt(
        self, part: str, name: str, do: Callable[[], tuple[Any, str]], *, needs: float = -math.inf, reserve: float = 0.0
    ) -> None:
        """Record what a function returns, that there is no time for it, or that it failed: the others are still wanted.

        A timing that is there from before is kept.
        """
        old = self.before.get(part, {}).get(name)
        if isinstance(old, dict) and "seconds" in old:
            self.put(part, name, old, f"{old['seconds']:.4f} s per epoch and seed, as measured before")
            return
        if reason := reason_to_skip(needs, self.left(), reserve=reserve):
            self.put(part, name, reason)
            return
        try:
            value, text = do()
        except Exception as error:  # out of memory, a form that the device can't compile, a run's folder in the way
            traceback.print_exc()
            self.failed += 1
            value = text = f"failed: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        self.put(part, name, value, text)


def facts(bench: Bench) -> None:
    """Record the device, its memory, the versions, and the user's precision, which the parts below don't use.

    Timings of an earlier call with all these the same are still good.
    """
    device = jax.devices()[0]
    bench.memory = (device.memory_stats() or {}).get("bytes_limit")  # a CPU doesn't say
    more = {"memory_bytes": bench.memory, "compute_capability": getattr(device, "compute_capability", None)}
    more["jax_default_matmul_precision"] = jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
    found = environment(**more)
    before = read_json(bench.out / "gpu.json") if (bench.out / "gpu.json").is_file() else {}
    same = {"environment": plain(found), "tiny": bench.tiny, "seeds": bench.seeds}
    if isinstance(before, dict) and all(before.get(name) == value for name, value in same.items()):
        # Rows are not timings: their seeds are in the runs' folders, and trained if they are missing there.
        bench.before = {name: value for name, value in before.items() if name in ("ways", "nets", "dense")}
    for name, value in found.items():
        bench.put("environment", name, value)


def best_seconds(function: Callable[[], Any], repeats: int) -> float:
    """Return the shortest mean time of ten calls; a first one that may compile isn't counted."""
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
    size, elements = (256, 2**20) if bench.tiny else (8192, 2**28)

    def product(name: str) -> tuple[float, str]:
        values = jax.random.normal(jax.random.key(0), (size, size))  # products of ones need less power, and run faster
        x = values.astype(jnp.bfloat16 if name == "bfloat16" else jnp.float32)
        multiply = jax.jit(lambda x: jnp.matmul(x, x, precision=MATMUL[name]))
        rate = 2 * size**3 / best_seconds(lambda: multiply(x), 3) / 1e12
        return rate, f"{rate:.2f} TFLOP/s"

    def copy() -> tuple[float, str]:
        x = jnp.ones(elements)
        scale = jax.jit(lambda x: x * 1.5)
        rate = 2 * x.nbytes / best_seconds(lambda: scale(x), 3) / 1e9
        return rate, f"{rate:.0f} GB/s"

    bench.attempt("gigabytes_per_s", "read and write", copy)
    for name in MATMUL:
        bench.attempt("tflops", name, partial(product, name))


def first_images(dataset, train: int, test: int | None = None):
    """Return a data set of the first images alone, as many of both parts unless `test` is given, which says so."""
    counts = {"train": train, "test": train if test is None else test}
    few = {f"{part}_{kind}": count for part, count in counts.items() for kind in ("images", "labels")}
    arrays = {name: getattr(dataset, name)[:count] for name, count in few.items()}
    source = f"{dataset.source}, its first {counts['train']:,} images, {counts['test']:,} to test"
    return dataclasses.replace(dataset, source=source, **arrays)
