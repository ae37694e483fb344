"""Seconds per epoch and seed of the FCN on full MNIST, evaluation included; run it on an idle machine.

    python experiments/benchmarks/speed.py --data-dir DIR --torch VENV/bin/python --out speed.json

With --torch, the Python of an environment that has PyTorch, beside PyTorch's steps (see peer.py).  With --models,
milliseconds per training step and seed of convolutional nets instead, on random images, without evaluation:

    python experiments/benchmarks/speed.py --models conv2,conv4,conv6 --torch VENV/bin/python --out steps.json
    python experiments/benchmarks/speed.py --models conv2 --memory-of=2

The variants take turns, round after round, so that a machine whose speed drifts slows all of them alike; minimum and
median are over rounds.  Memory is the peak of a process of its own that trains 50 seeds at once.
"""

import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turns import Way, by_turns, epochs_of

from ssm.errors import UserError
from ssm.runs.program import run_program


@dataclass(frozen=True, kw_only=True)
class Options:
    """Time the FCN's epochs, or the steps of other nets."""

    models: str = ""
    """Convolutional nets, with commas between: conv2, conv4, conv6, conv8, resnet20."""
    torch: Path | None = None
    """Python of an environment with PyTorch, to time its steps of the same nets."""
    data_dir: Path | None = None
    """Folder of the MNIST files (default: where train.py looks)."""
    rounds: int = 5
    """Timed epochs of each variant."""
    seeds: int = 10
    """Seeds of a variant, unless it names its own number."""
    out: Path | None = None
    """File for the figures, as JSON."""
    only: str = ""
    """Just the variants whose name holds this text."""
    memory_of: int | None = None
    """Print the peak memory of a process that trains so many seeds at once: in bytes, and nothing else, or with one of
    --models beside the estimate."""


VARIANTS = (
    Way("signed float32"),
    Way("signed bfloat16", precision="bfloat16"),
    Way("dense baseline float32", method="baseline"),
    Way("signed float32, signs read in the step", folded=False),
    Way("signed float32, seeds vectorised (vmap)", loop="vmap"),
    Way("signed float32, one device", devices=1),
    Way("signed float32, 1 seed", seeds=1),
    Way("signed float32, 2 seeds", seeds=2),
    Way("signed float32, 50 seeds", seeds=50),
)


def prepare(way: Way, dataset, default_seeds: int):
    """Return a function that runs one epoch of all seeds, and their number."""
    import jax

    from ssm.recipes.build import trainer
    from ssm.recipes.config import resolve

    named = {"model": "fcn", "method": way.method, "preset": "default", "dataset": dataset.name}
    config = resolve(**named, samples=len(dataset.train_labels), overrides={"precision": way.precision})
    seeds = way.seeds or default_seeds
    most = min(way.devices or seeds, len(jax.devices()), seeds)
    # Seeds are spread evenly: what does not divide leaves a device out.
    devices = jax.devices()[: next(count for count in range(most, 0, -1) if seeds % count == 0)]
    ready = trainer(config, dataset, devices=devices, loop=way.loop, folded=way.folded)  # type: ignore[arg-type]
    return epochs_of(ready, config, seeds), seeds


def time_all(dataset, options: Options) -> dict[str, dict[str, Any]]:
    """Return the times of every variant by name; prints a line for each."""
    ready = {way.name: prepare(way, dataset, options.seeds) for way in VARIANTS if options.only in way.name}
    figures: dict[str, dict[str, Any]] = {}
    for name, found in by_turns(ready, options.rounds).items():
        figures[name] = {"seeds": ready[name][1], **found}
        line = "  ".join(f"{key} {found[key]:.3f}" for key in ("minimum", "median", "maximum"))
        print(f"{name:45s} {line}  s per epoch and seed ({ready[name][1]} seeds)", flush=True)
    if options.torch is not None:
        from steps import BATCH, peers

        from ssm.training.batches import steps_per_epoch

        count = steps_per_epoch(len(dataset.train_labels), BATCH)
        for name, found in peers(options.torch, "fcn", count).items():
            figures[name] = {"seeds": 1, "median": count * found["median"]}
            print(f"{name:45s} {figures[name]['median']:.3f} s for {count} steps, one batch, no evaluation", flush=True)
    return figures


def peak_memory(dataset, seeds: int) -> int:
    """Return this process's peak memory in bytes after an epoch of so many seeds."""
    epoch, _ = prepare(Way("memory", seeds=seeds), dataset, seeds)
    epoch(0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(options: Options) -> None:
    from ssm import data, files
    from ssm.training import devices

    devices.use_host_devices()
    if options.rounds < 1 or options.seeds < 1:
        raise UserError(f"--rounds and --seeds must be at least 1; got {options.rounds} and {options.seeds}.")
    if options.models:
        from steps import known_nets, say_memory, time_nets

        models = known_nets(options.models)
        where = devices.environment()
        print(f"{where['processor']}, JAX {where['jax']}, {where['devices']} devices", flush=True)
        if options.memory_of is not None:
            say_memory(models, options.memory_of)
            return
        figures = {"environment": where, "models": time_nets(models, options.rounds, options.only, options.torch)}
        if options.out is not None:
            files.write_json(options.out, figures)
        return
    dataset = data.load("mnist", data_dir=options.data_dir)
    if options.memory_of is not None:
        print(json.dumps(peak_memory(dataset, options.memory_of)))
        return
    where = devices.environment()
    print(f"{where['processor']}, JAX {where['jax']}, {where['devices']} devices", flush=True)
    figures: dict[str, Any] = {"environment": where}
    if not options.only:
        # First: Linux counts what a process had when it was started as a copy of this one to its peak.
        where_data = [f"--data-dir={options.data_dir}"] if options.data_dir else []
        call = [sys.executable, __file__, *where_data, "--memory-of=50"]
        figures["peak_memory_50_seeds"] = json.loads(subprocess.run(call, check=True, capture_output=True).stdout)
        print(f"peak memory, 50 seeds at once: {figures['peak_memory_50_seeds'] / 1e9:.2f} GB", flush=True)
    figures["variants"] = time_all(dataset, options)
    if options.out is not None:
        files.write_json(options.out, figures)
    if not options.only:
        masked, dense = (figures["variants"][name]["median"] for name in ("signed float32", "dense baseline float32"))
        print(f"masked over dense, medians: {masked / dense:.3f}")
    if options.out is not None:
        files.write_json(options.out, figures)


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
