"""Milliseconds per training step and seed of the convolutional nets, for speed.py."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BATCH, STEPS = 128, 8


@dataclass(frozen=True)
class Way:
    """One way to compute the step of a net: a name, and how it differs from the signed net in float32."""

    name: str
    method: str = "signed"
    precision: str = "float32"
    loop: str = "map"
    form: str = "auto"
    devices: int | None = None  # None: one per core
    seeds: int | None = None  # None: one per device


WAYS = (
    Way("signed float32"),
    Way("signed bfloat16", precision="bfloat16"),
    Way("dense float32", method="baseline"),
    Way("signed float32, one seed, one device", devices=1),
    Way("signed float32, seeds vectorised", devices=1, loop="vmap", seeds=2),
    Way("signed float32, columns", form="columns"),
)


def made_images(model: str):
    """Return a data set of random images, enough for an epoch of a few steps, that is evaluated on next to nothing."""
    from ssm.data import Dataset

    classes = 100 if model in ("resnet56", "resnet110") else 10
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (BATCH * STEPS, 32, 32, 3)).astype(np.uint8)
    labels = rng.integers(0, classes, BATCH * STEPS).astype(np.int32)
    names = tuple(str(number) for number in range(classes))
    return Dataset(f"cifar{classes}", "random images", images, labels, images[:1], labels[:1], classes, names)


def prepare(model: str, way: Way):
    """Return a function that runs one epoch of all seeds, and the steps in it, one of each seed counted."""
    import jax

    from ssm.config import resolve
    from ssm.epoch import Given
    from ssm.train import make_trainer, schedule

    dataset = made_images(model)
    overrides = {"precision": way.precision, "batch_size": BATCH}
    named = {"model": model, "method": way.method, "preset": "default", "dataset": dataset.name}
    config = resolve(**named, samples=BATCH * STEPS, overrides=overrides)
    devices = jax.devices()[: way.devices]
    seeds = np.arange(way.seeds or len(devices), dtype=np.uint32)
    trainer = make_trainer(config, dataset, devices=devices, loop=way.loop, form=way.form)  # type: ignore[arg-type]
    program = trainer.program
    given = program.place(Given(seeds, np.ones(len(seeds), np.float32), np.ones(len(seeds), bool)))
    rates = schedule(config, 0, STEPS)
    state = [program.start(given.seed)]

    def epoch(number: int) -> None:
        more = program.share((np.uint32(number), *rates))
        state[0], info = program.epoch(state[0], given, *more, trainer.order, trainer.train, trainer.test)
        jax.block_until_ready(info)

    return epoch, STEPS * len(seeds)


def operations(model: str) -> float:
    """Return the operations of a step, three products a layer; of the plain nets as peer.py counts them."""
    import jax.numpy as jnp
    from peer import CHANNELS, step_flops

    from ssm.build import build
    from ssm.config import resolve
    from ssm.estimate import forward_operations

    if model in CHANNELS:
        return step_flops(model, BATCH)
    named = {"model": model, "method": "signed", "preset": "default", "dataset": made_images(model).name}
    config = resolve(**named, samples=BATCH, overrides={"batch_size": BATCH})
    return 3 * BATCH * forward_operations(build(config), jnp.zeros((1, 32, 32, 3)))


def peer(python: Path, model: str, rounds: int, threads: int) -> dict[str, Any]:
    """Return what peer.py measures of a net in another environment, that of PyTorch."""
    script = Path(__file__).with_name("peer.py")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "peer.json"
        options = [f"--models={model}", f"--steps={rounds * STEPS // 2}", f"--threads={threads}", f"--out={out}"]
        subprocess.run([python, script, *options], check=True, stdout=sys.stderr)
        return json.loads(out.read_text())


def time_nets(models: list[str], rounds: int, only: str, torch: Path | None) -> dict[str, Any]:
    """Return the times of every way of every net; prints a line for each.

    The ways take turns, round after round, so that a machine whose speed drifts slows all of them alike; PyTorch's
    steps come right after those of the same net.
    """
    from ssm.devices import cores

    figures: dict[str, Any] = {}
    for model in models:
        ready, times = {}, {}
        counted = operations(model)
        for way in (way for way in WAYS if only in way.name):
            epoch, steps = prepare(model, way)
            start = time.perf_counter()
            epoch(0)
            ready[way.name], times[way.name] = (epoch, steps), []
            first = time.perf_counter() - start
            figures.setdefault(model, {})[way.name] = {"first_epoch_with_compilation": first}
        for number in range(1, rounds + 1):
            for name, (epoch, steps) in ready.items():
                start = time.perf_counter()
                epoch(number)
                times[name].append((time.perf_counter() - start) / steps)
        for name, found in times.items():
            figures[model][name] |= {"minimum": min(found), "median": statistics.median(found), "maximum": max(found)}
            say(model, name, figures[model][name], counted)
        if torch is not None:
            row = peer(torch, model, rounds, cores())["models"][model]
            figures[model]["PyTorch eager, channels last"] = row
            say(model, "PyTorch eager, channels last", {"median": row["median_ms"] / 1e3}, counted)
    return figures


def say(model: str, name: str, figures: dict[str, float], counted: float) -> None:
    """Print a line: minimum, median and maximum of a step, its rate, and what compiling took."""
    known = (figures.get(key) for key in ("minimum", "median", "maximum"))
    line = " ".join("        " if value is None else f"{1e3 * value:8.1f}" for value in known)
    rate = counted / figures["median"] / 1e9
    first = figures.get("first_epoch_with_compilation")
    rest = "" if first is None else f"  first epoch {first:.1f} s"
    print(f"{model:9s} {name:38s} {line}  ms per step and seed  {rate:4.0f} GFLOP/s{rest}", flush=True)
