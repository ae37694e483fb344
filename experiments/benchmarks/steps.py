"""Milliseconds per training step and seed of the convolutional nets, for speed.py."""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from peer import CHANNELS, step_flops
from turns import Way, by_turns, epochs_of, random_images

from ssm.errors import UserError
from ssm.recipes.presets import DATA_CLASSES, MODEL_DATA

BATCH, STEPS = 128, 8


WAYS = (
    Way("signed float32"),
    Way("signed bfloat16", precision="bfloat16"),
    Way("dense float32", method="baseline"),
    Way("signed float32, ten seeds", seeds=10),
    Way("signed float32, one seed, both devices", devices=2, seeds=1),
    Way("signed float32, one seed, one device", devices=1),
    Way("signed float32, seeds vectorised", devices=1, loop="vmap", seeds=2),
    Way("signed float32, im2col", form="im2col"),
)


def known_nets(text: str) -> list[str]:
    """Return the models that a text names, commas between; raises UserError for another than a convolutional net."""
    known = [model for model, sets in MODEL_DATA.items() if sets[0].startswith("cifar")]
    models = [name.strip() for name in text.split(",")]
    if wrong := [name for name in models if name not in known]:
        raise UserError(f"--models={wrong[0]} is not known; choose from: {', '.join(known)}.")
    return models


def images_for(model: str):
    """Return random images for an epoch of a few steps, which is evaluated on next to nothing."""
    return random_images(BATCH * STEPS, 1, classes=DATA_CLASSES[MODEL_DATA[model][0]])


def settings(model: str, method: str = "signed", precision: str = "float32"):
    """Return a net's resolved configuration, preset default."""
    from ssm.recipes.config import resolve

    named = {"model": model, "method": method, "preset": "default", "dataset": MODEL_DATA[model][0]}
    return resolve(**named, samples=BATCH * STEPS, overrides={"precision": precision, "batch_size": BATCH})


def prepare(model: str, way: Way):
    """Return a function that runs one epoch of all seeds, and the steps in it, one of each seed counted."""
    import jax

    from ssm.recipes.build import trainer

    devices = jax.devices()[: way.devices]
    apart = way.seeds == 1 and len(devices) == 2
    config = settings(model, way.method, way.precision)
    ready = trainer(config, images_for(model), devices=devices, loop=way.loop, apart=apart, form=way.form)  # type: ignore[arg-type]
    seeds = way.seeds or len(devices)
    return epochs_of(ready, config, seeds), STEPS * seeds


def say_memory(models: list[str], seeds: int) -> None:
    """Print the estimate of the memory that so many seeds take, and this process's peak after training one net's."""
    import jax

    from ssm.runs.job import recipe_job

    if len(models) != 1:
        raise UserError("--memory-of takes one of --models: a process has one peak.")
    dataset, config, devices = images_for(models[0]), settings(models[0]), jax.devices()[:seeds]
    memory = recipe_job(config, dataset).memory
    assert memory is not None
    estimate = memory(devices=len(devices), loop="map")(seeds)
    epoch, _ = prepare(models[0], Way("memory", devices=len(devices), seeds=seeds))
    epoch(0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    where = f"{models[0]}, {seeds} seeds on {len(devices)} devices"
    print(f"{where}: estimate {estimate / 1e9:.2f} GB, peak {peak / 1e9:.2f} GB, ratio {estimate / peak:.2f}")


def operations(model: str) -> float:
    """Return the operations of a step, three products a layer; of the plain nets as peer.py counts them."""
    import jax.numpy as jnp

    from ssm.recipes.build import build
    from ssm.runs.estimate import forward_operations

    if model in CHANNELS:
        return step_flops(model, BATCH)
    net = build(settings(model), classes=DATA_CLASSES[MODEL_DATA[model][0]])
    return 3 * BATCH * forward_operations(net, jnp.zeros((1, 32, 32, 3)))


def peers(python: Path, model: str, steps: int) -> dict[str, dict[str, float]]:
    """Return the median seconds of PyTorch's steps of a net, by name, by peer.py in another environment."""
    from ssm.training.devices import cores

    script, found = Path(__file__).with_name("peer.py"), {}
    for name, more in (("PyTorch eager, channels last", ()), ("PyTorch torch.compile", ("--compile",))):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "peer.json"
            options = [f"--models={model}", f"--steps={steps}", f"--threads={cores()}", f"--out={out}", *more]
            subprocess.run([python, script, *options], check=True, stdout=sys.stderr)
            found[name] = {"median": json.loads(out.read_text())["models"][model]["median_ms"] / 1e3}
    return found


def time_nets(models: list[str], rounds: int, only: str, torch: Path | None) -> dict[str, Any]:
    """Return the times of every way of every net; prints a line for each.

    PyTorch's steps come right after those of the same net.
    """
    figures: dict[str, Any] = {}
    for model in models:
        counted = operations(model)
        figures[model] = by_turns({way.name: prepare(model, way) for way in WAYS if only in way.name}, rounds)
        for name, found in figures[model].items():
            say(model, name, found, counted)
        if torch is not None and model in CHANNELS:
            others = peers(torch, model, rounds * STEPS // 2)
            figures[model] |= others
            for name, found in others.items():
                say(model, name, found, counted)
    return figures


def say(model: str, name: str, figures: dict[str, float], counted: float) -> None:
    """Print a line: minimum, median and maximum of a step, its rate, and what compiling took."""
    known = (figures.get(key) for key in ("minimum", "median", "maximum"))
    line = " ".join("        " if value is None else f"{1e3 * value:8.1f}" for value in known)
    rate = counted / figures["median"] / 1e9
    first = figures.get("first_epoch_with_compilation")
    rest = "" if first is None else f"  first epoch {first:.1f} s"
    print(f"{model:9s} {name:38s} {line}  ms per step and seed  {rate:4.0f} GFLOP/s{rest}", flush=True)
