"""What a GPU that is there for nine minutes can show: ceilings, the FCN, single layers, the conv nets, and a table.

    python experiments/benchmarks/gpu.py --data-dir DATA --out results

Each item has a process and a time cap of its own: one that fails, runs out of memory or takes too long says so, and
the next is run.  Every figure is printed at once and appended to OUT/gpu.jsonl; whole rows are ordinary runs in
OUT/runs.  Convolutional nets are timed on a tenth of an epoch of made images.  On a CPU, try --tiny: few and small
things.

A machine without a package index needs three packages beside JAX, Flax, optax, chex and pytest, in a folder that Git
ignores:

    pip download --no-deps --dest carry tyro docstring_parser typeguard
    pip install --no-index --no-deps --target /tmp/site carry/*.whl && PYTHONPATH=/tmp/site python ... --data-dir carry
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from turns import by_turns, epochs_of, random_images

from ssm.errors import UserError
from ssm.runs.program import run_program

SEEDS, SLICE = {"fcn": 50, "map": 4, "vmap": 10}, (39 * 128, 1000)  # images: 39 of 391 steps, a tenth of the tests
ROOT = Path(__file__).resolve().parents[2]
PLANNED = 9.0  # minutes, of which each item's end is a part
KEPT = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}  # an epoch is compiled for its memory, and taken from there
FUSION = {"XLA_FLAGS": "--xla_gpu_experimental_enable_conv_fusion=true"}
LAYERS = ((32, 64, 64), (16, 128, 128), (4, 512, 512), (32, 16, 16))  # side, inputs, outputs
NETS = (
    "conv4 bfloat16 map",
    "conv4 float32 map",
    "conv4 bfloat16 vmap",
    "resnet20 float32 map",
    "resnet20 float32 vmap",
)
NETS += ("conv8 bfloat16 map", "conv2 bfloat16 map")
FUSED = "conv4 bfloat16 map fusion"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure this machine's accelerator (on a CPU, use --tiny)."""

    data_dir: Path | None = None
    """Folder of MNIST's files (default: made images)."""
    out: Path = Path("gpu-results")
    """Folder for gpu.jsonl and the runs."""
    minutes: float = 9.0
    """Time after which all is stopped but the table."""
    item: str = ""
    """This item alone, without a cap and in this process."""
    tiny: bool = False
    """Everything small, to try the program on a CPU."""


def put(options: Options, name: str, figures: dict[str, Any]) -> None:
    """Print the figures of an item, or of a part of it, and append them to the file."""
    from ssm.files import plain

    numbers = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in figures.items()}
    print(f"{name:32s} " + ", ".join(f"{key} {value}" for key, value in numbers.items()), flush=True)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        with open(options.out / "gpu.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(plain({"name": name, **figures})) + "\n")
    except OSError as error:
        raise UserError(f"{options.out} cannot be written: {error.strerror or error}") from error


def attempt(options: Options, name: str, do: Callable[[], dict[str, Any] | None]) -> None:
    """Put what a function returns, if anything, or why it failed: out of memory, a precision that the device lacks."""
    try:
        figures = do()
    except Exception as error:
        figures = {"failed": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}
    if figures is not None:
        put(options, name, figures)


def machine(options: Options, name: str) -> dict[str, Any]:
    """Say the versions, the device, its memory and its driver."""
    from ssm.training.devices import available_memory, environment

    file = Path("/proc/driver/nvidia/version")
    driver = file.read_text().splitlines()[0] if file.exists() else None
    return {**environment(), "driver": driver, "memory GB": available_memory() / 1e9}


def products(options: Options, name: str) -> None:
    """Measure the rates of large matrix products, and of those of the FCN's first layer, in each precision."""
    import jax
    import jax.numpy as jnp

    preset = jax.lax.DotAlgorithmPreset
    kinds = {"float32": preset.F32_F32_F32, "X3": preset.TF32_TF32_F32_X3, "TF32": preset.TF32_TF32_F32}
    size, seeds = (256, 2) if options.tiny else (8192, SEEDS["fcn"])

    def rate(kind: str, left: tuple[int, ...], right: tuple[int, ...]) -> dict[str, Any]:
        # Products of ones need less power, and run faster.
        dtype = jnp.bfloat16 if kind == "bfloat16" else jnp.float32
        x, y = (jax.random.normal(jax.random.key(at), shape, dtype) for at, shape in enumerate((left, right)))
        multiply = jax.jit(partial(jnp.matmul, precision=kinds.get(kind)))
        times = []
        for _ in range(4):  # the first one compiles
            start = time.perf_counter()
            jax.block_until_ready([multiply(x, y) for _ in range(10)][-1])  # queued, so that launching one is hidden
            times.append((time.perf_counter() - start) / 10)
        return {"TFLOP/s": 2 * x.size * right[-1] / min(times[1:]) / 1e12, "ms": 1e3 * min(times[1:])}

    for kind in ("float32", "X3", "TF32", "bfloat16"):
        attempt(options, f"{size} cubed, {kind}", partial(rate, kind, (size, size), (size, size)))
        do = partial(rate, kind, (seeds, 128, 784), (seeds, 784, 300))
        attempt(options, f"{seeds} x 128 x 784 x 300, {kind}", do)


def layer(options: Options, name: str, *, sizes: tuple[int, int, int]) -> None:
    """Time a 3 x 3 convolution and both its gradients for ten seeds, 20 steps in a scan, in each way and precision.

    The way `plain` is JAX's own, whose filter gradients are grouped convolutions where seeds are vectorised.
    """
    import jax
    import jax.numpy as jnp
    from convolutions import best_seconds

    from ssm.ops.convolution import NUMBERS, conv_general_dilated

    side, inputs, outputs = sizes
    batch, seeds = (2, 2) if options.tiny else (128, SEEDS["vmap"])
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = (batch, side, side, inputs), (3, 3, inputs, outputs), (batch, side, side, outputs)
    state = tuple(jax.random.normal(key, (seeds, *shape)) for key, shape in zip(keys, shapes, strict=True))

    def milliseconds(loop: str, form: Any, precision: str) -> dict[str, Any]:
        def one(state):
            x, w, g = state

            def convolved(x, w):
                if form == "plain":
                    x, w = (array.astype("bfloat16" if precision == "bfloat16" else "float32") for array in (x, w))
                    y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NUMBERS)
                    return jnp.vdot(y.astype("float32"), g)
                chosen = {"form": form, "bfloat16": precision == "bfloat16", "dimension_numbers": NUMBERS}
                return jnp.vdot(conv_general_dilated(x, w, (1, 1), "SAME", **chosen), g)

            dx, dw = jax.grad(convolved, (0, 1))(x, w)
            return x + 1e-9 * dx, w + 1e-9 * dw, g

        over = jax.vmap(one) if loop == "vmap" else partial(jax.lax.map, one)
        with jax.default_matmul_precision("tensorfloat32" if precision == "TF32" else "highest"):
            seconds = best_seconds(over, state, 20) / seeds
        operations = 3 * 2 * batch * side * side * 9 * inputs * outputs
        return {"ms per seed": 1e3 * seconds, "TFLOP/s": operations / seconds / 1e12}

    for loop, form in (("map", "xla"), ("vmap", "xla"), ("map", "im2col"), ("vmap", "plain")):
        for precision in ("bfloat16", "float32", "TF32"):
            attempt(options, f"{name}, {loop} {form} {precision}", partial(milliseconds, loop, form, precision))


def settings(options: Options, model: str, precision: str) -> tuple[Any, Any]:
    """Return a net's configuration, preset default, and the images to train it on."""
    from ssm import data
    from ssm.recipes.config import resolve

    images = random_images(*((64, 32) if options.tiny else (60_000, 10_000) if model == "fcn" else SLICE))
    if model == "fcn" and options.data_dir:
        images = data.load("mnist", data_dir=options.data_dir)
    elif model == "fcn" or options.tiny:
        shape = np.s_[:, :28, :28, :1] if model == "fcn" else np.s_[:, :16, :16]
        arrays = {"train_images": images.train_images[shape], "test_images": images.test_images[shape]}
        images = replace(images, name="mnist" if model == "fcn" else "cifar10", **arrays)
    overrides: dict[str, Any] = {"precision": precision}
    overrides |= {"batch_norm": "affine"} if model == "resnet20" else {}
    overrides |= {"epochs": 2, "batch_size": 32, "width": 0.0625} if options.tiny else {}
    named = {"model": model, "method": "signed", "preset": "default", "dataset": images.name}
    return resolve(**named, samples=len(images.train_labels), overrides=overrides), images


def epoch(options: Options, name: str) -> dict[str, Any]:
    """Compile and time an epoch of the seeds of NET PRECISION LOOP, and say the memory that was predicted and taken."""
    import jax

    from ssm.recipes.build import trainer
    from ssm.runs.estimate import forward_operations
    from ssm.runs.job import recipe_job
    from ssm.training.ahead import device_bytes, lowered_epoch
    from ssm.training.batches import steps_per_epoch

    model, precision, loop_name = name.split()[:3]
    loop: Any = loop_name
    config, images = settings(options, model, precision)
    seeds = 2 if options.tiny else SEEDS.get(model, SEEDS[loop])
    ready = trainer(config, images, devices=jax.devices()[:1], loop=loop, form="xla")
    start, parts = time.perf_counter(), {"train": ready.train, "test": ready.test, "order": ready.order}
    compiled = lowered_epoch(ready.task, ready.program, seeds, **parts).compile()
    compiling = time.perf_counter() - start  # and kept in the cache, for what follows
    found = by_turns({name: (epochs_of(ready, config, seeds), seeds)}, 2)[name]
    job, batch = recipe_job(config, images, "xla"), config.batch_size
    steps = steps_per_epoch(len(images.train_labels), batch)
    factor = 1.0 if model == "fcn" else steps_per_epoch(50_000, batch) / steps  # to a whole epoch
    operations = 3 * steps * batch * forward_operations(job.task.net(job.task.numbers), job.task.example)
    estimated = job.memory(devices=1, loop=loop)(seeds) if job.memory else 0.0
    taken = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")  # a CPU doesn't say
    taken = taken or 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {"s per seed and epoch": found["minimum"] * factor, "slowest": found["maximum"] * factor}
    figures |= {"compiling": compiling, "first": found["first_epoch_with_compilation"]}
    figures |= {"TFLOP/s": operations / found["minimum"] / 1e12, "seeds": seeds, "epochs": config.epochs}
    predicted = {"estimated GB": estimated / 1e9, "compiled GB": device_bytes(compiled) / 1e9}
    return figures | predicted | {"taken GB": taken / 1e9}


def row(options: Options, name: str) -> dict[str, Any]:
    """Train all seeds of the FCN to the end, as an ordinary run."""
    from ssm.runs.job import recipe_job
    from ssm.runs.run import RunOptions, run_job

    config, images = settings(options, "fcn", "float32")
    seeds, start = range(2 if options.tiny else SEEDS["fcn"]), time.perf_counter()
    run = run_job(recipe_job(config, images), seeds, out=options.out / "runs", options=RunOptions(loop="vmap"))
    seconds = time.perf_counter() - start
    summary: Any = run.summary()
    figures = {name: summary[name]["mean"] for name in ("test_accuracy", "remaining_weights")}
    epochs = summary["seconds_per_epoch_and_seed"]["median"] * len(seeds) * config.epochs
    return {"seconds": seconds, "of them epochs": epochs, "images": images.source, **figures}


def tests(options: Options, name: str) -> dict[str, Any]:
    """Run the tests that need an accelerator."""
    call = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "tests/training/test_gpu.py"]
    call += ["-k", "halved"] if options.tiny else []
    shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # one test has a process of its own
    done = subprocess.run(call, cwd=ROOT, env=os.environ | shared, capture_output=True, text=True, check=False)
    print(done.stdout[-4000:], flush=True)
    return {"status": done.returncode, "last": (done.stdout.strip().splitlines() or [done.stderr[-200:]])[-1]}


def items(options: Options) -> dict[str, tuple[float, float, Callable[[Options, str], dict[str, Any] | None]]]:
    """Return each item's cap in seconds, when it must be over in minutes, and its function, in their order."""
    found: dict[str, tuple[float, float, Any]] = {"machine": (20, 0.5, machine), "products": (30, 0.75, products)}
    found |= {f"fcn {precision} vmap": (30, 2, epoch) for precision in ("float32", "tf32x3", "bfloat16")}
    found |= {"fcn, a whole row": (60, 2.5, row)}
    layers = ((4, 4, 4),) if options.tiny else LAYERS
    found |= {"{} x {}, {} to {}".format(one[0], *one): (40, 4.25, partial(layer, sizes=one)) for one in layers}
    found |= {name: (60, 7, epoch) for name in (NETS[2:4] if options.tiny else NETS)}
    return found | {FUSED: (60, 7.75, epoch), "tests": (60, 8.5, tests)}


def table(lines: dict[str, dict[str, Any]]) -> str:
    """Return what the epochs come to: seconds, minutes of a row of 50 seeds, memory predicted and taken."""
    text = ["| net and way | s per seed and epoch | minutes a row | estimated GB | compiled GB | taken GB |"]
    text.append("|---|---|---|---|---|---|")
    for name, line in lines.items():
        if seconds := line.get("s per seed and epoch"):
            memory = (line[f"{kind} GB"] for kind in ("estimated", "compiled", "taken"))
            cells = (seconds, seconds * line["epochs"] * SEEDS["fcn"] / 60, *memory)
            text.append(f"| {name} | " + " | ".join(f"{cell:.4g}" for cell in cells) + " |")
    return "\n".join(text)


def started_alone(options: Options, name: str, cap: float, environment: dict[str, str]) -> None:
    """Run an item in a process of its own, and say if it takes longer than so many seconds, or fails."""
    call, flags = [sys.executable, __file__, *sys.argv[1:], f"--item={name}"], FUSION if name == FUSED else {}
    try:
        subprocess.run(call, env=os.environ | environment | flags, timeout=cap, check=True)
    except subprocess.TimeoutExpired:
        put(options, name, {"failed": f"stopped after {cap:.0f} s"})
    except subprocess.CalledProcessError as error:
        put(options, name, {"failed": f"its process ended with status {error.returncode}"})


def main(options: Options) -> None:
    """Run every item in a process of its own, or one item in this one."""
    started, every, file = time.monotonic(), items(options), options.out / "gpu.jsonl"
    if options.item:
        if options.item not in every:
            raise UserError(f"--item={options.item} is not known; choose from: {'; '.join(every)}")
        return attempt(options, options.item, partial(every[options.item][-1], options, options.item))
    put(options, "gpu.py", {"arguments": sys.argv[1:]})  # or no figure could be written
    with TemporaryDirectory() as cache:
        for name, (cap, until, _) in every.items():
            left = options.minutes * 60 * (1 if options.tiny else until / PLANNED) - (time.monotonic() - started)
            cap = left if options.tiny else min(cap, left)  # a CPU may be busy with other things
            started_alone(options, name, max(0.0, cap), KEPT | {"JAX_COMPILATION_CACHE_DIR": cache})
    lines = {line["name"]: line for line in map(json.loads, file.read_text("utf-8").splitlines())}  # the last of a name
    failed = "; ".join(name for name, line in lines.items() if "failed" in line)
    print(f"{table(lines)}\n{time.monotonic() - started:.0f} s; failed: {failed or 'none'}")


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
