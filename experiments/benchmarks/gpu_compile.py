"""What the training programs come to on an H100 that isn't there: kernels, bytes and memory, by XLA's GPU compiler.

    python experiments/benchmarks/gpu_compile.py

It needs no GPU, but JAX's CUDA plugin and NVIDIA's compiler (docs/gpu.md).  Nothing is run: minutes are estimates.
"""

import json
import time
from dataclasses import asdict, dataclass
from typing import Any, get_args

from gpu_device import BANDWIDTH, LAUNCH, PEAK, described_gpu
from hlo import Instruction, Turn, computations, turns

from ssm.errors import UserError
from ssm.runs.program import run_program

CIFAR, TESTED = ("cifar10", 50_000, (32, 32, 3)), 10_000
GIVEN = {"fcn": ("mnist", 60_000, (28, 28, 1))}  # data set, samples and their shape; the others have CIFAR's
WINDOW = 3
HEAD = "| net and way | kernels | MB | arguments GB | temporary GB | windows above 3 x 3 | donated | compiled in s | "
HEAD += "memory, products, launches min | row min |\n|" + "---|" * 10


@dataclass(frozen=True, kw_only=True)
class Options:
    """Compile epochs of masked nets, preset default, and count what a training step runs."""

    ways: str = "fcn float32,conv4 float32,resnet20 float32"
    """With commas between: NET PRECISION [LOOP [FORM]]; the loop over seeds is by default the one that a GPU takes."""
    methods: str = "signed"
    """Methods, as --method has them, on their default preset.  What a step does by turns or only at times (a
    selection's search, new connections) is counted once."""
    seeds: int = 50
    """Seeds trained at once."""
    json: bool = False
    """Print a line of JSON for each way instead of the table."""


@dataclass(frozen=True)
class Counted:
    """Of a compiled epoch: a step's kernels and bytes, the program's memory, and minutes of a row by resource.

    windows: forward convolutions with a window above 3 x 3.  state: the bytes that ought to be donated.
    """

    loop: str
    kernels: int
    step_bytes: int  # of one seed under map, of all under vmap
    arguments: int
    temporary: int
    donated: int
    state: int
    windows: int
    seconds: float  # to compile
    minutes: dict[str, float]


def counted(way: str, seeds: int, device: Any, method: str = "signed") -> Counted:
    """Return what a way's epoch comes to for so many seeds; raises UserError for a way that there isn't."""
    import jax

    from ssm.models import MODELS
    from ssm.recipes import build
    from ssm.recipes.config import resolve
    from ssm.runs.estimate import forward_operations
    from ssm.training.ahead import lowered_epoch
    from ssm.training.batches import steps_per_epoch
    from ssm.training.devices import seed_loop
    from ssm.training.epoch import make_program
    from ssm.training.task import SeedLoop

    model, precision, *more = [*way.split(), "", ""][:4] if len(way.split()) < 5 else ["", ""]
    if model not in MODELS or precision not in PEAK or more[0] not in ("", *get_args(SeedLoop)):
        raise UserError(
            f"--ways: {way!r} is not NET PRECISION [LOOP [FORM]]; of precisions there are {', '.join(PEAK)}"
        )
    dataset, samples, shape = GIVEN.get(model, CIFAR)
    named = {"model": model, "method": method, "preset": "default", "dataset": dataset}
    config = resolve(**named, samples=samples, overrides={"precision": precision})
    form: Any = more[1] or "auto"
    task = build.make_task(config, image_shape=shape, classes=10, form=form)
    loop: Any = more[0] or seed_loop(task)
    program = make_program(task, loop=loop, devices=[device])
    data = {"train": images(samples, shape), "test": images(TESTED, shape)}
    lowered = lowered_epoch(task, program, seeds, **data)
    start = time.perf_counter()
    compiled = lowered.compile()
    seconds = time.perf_counter() - start

    steps = steps_per_epoch(samples, config.batch_size), steps_per_epoch(TESTED, task.evaluation_batch)
    found = list(turns(computations(compiled.as_text() or "")))
    memory: Any = compiled.memory_analysis()
    parts = [(next(turn for turn in found if turn.trips == trips), trips) for trips in steps]
    operations = forward_operations(task.net(task.numbers), task.example) * (3 * samples + TESTED)
    return Counted(
        loop=loop,
        kernels=len(parts[0][0].kernels),
        step_bytes=parts[0][0].bytes,
        arguments=memory.argument_size_in_bytes,
        temporary=memory.temp_size_in_bytes,
        donated=memory.alias_size_in_bytes,
        state=sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(lowered.out_info[0])),
        windows=sum(is_wide(kernel) for turn, _ in parts for kernel in turn.kernels),
        seconds=seconds,
        minutes=minutes(parts, loop, seeds, config.epochs, operations, peak(model, precision)),
    )


def images(count: int, shape: tuple[int, ...]) -> Any:
    """Return the shapes of a part of a data set."""
    import jax
    import numpy as np

    from ssm.training.batches import Images

    of: Any = jax.ShapeDtypeStruct
    return Images(of((count, *shape), np.uint8), of((count,), np.int32), *[of((count,), np.float32)] * 2)


def peak(model: str, precision: str) -> float:
    """Return the rate of a net's products: of TF32 are dense ones alone, which is all that the FCN has."""
    return PEAK[precision if model == "fcn" or precision == "bfloat16" else "float32"]


def minutes(
    parts: list[tuple[Turn, int]], loop: str, seeds: int, epochs: int, operations: float, rate: float
) -> dict[str, float]:
    """Return the minutes of all seeds and epochs that each resource would take by itself."""
    turned = epochs / 60 * (seeds if loop == "map" else 1)
    return {
        "memory": turned * sum(turn.bytes * trips for turn, trips in parts) / BANDWIDTH,
        "products": epochs / 60 * seeds * operations / rate,
        "launches": turned * sum(len(turn.kernels) * trips for turn, trips in parts) * LAUNCH,
    }


def is_wide(kernel: Instruction) -> bool:
    """Say whether a kernel is a forward convolution with a window above 3 x 3."""
    sides = kernel.named(r"window=\{size=([\dx]+)").split("x")
    return "__cudnn$convForward" in kernel.text and max(map(int, filter(None, sides)), default=0) > WINDOW


def line(way: str, found: Counted, seeds: int) -> str:
    """Return a way's row of the table."""
    donated = "yes" if found.donated >= found.state else f"{found.donated / found.state:.0%}"
    memory, products, launches = found.minutes.values()
    least, most = max(memory, products, launches), max(memory + products, launches)  # as far as they overlap
    each = found.step_bytes / 1e6 / (1 if found.loop == "map" else seeds)
    cells = (way if found.loop in way else f"{way} ({found.loop})", found.kernels, f"{each:.1f}")
    cells += (f"{found.arguments / 1e9:.2f}", f"{found.temporary / 1e9:.2f}", found.windows, donated)
    cells += (f"{found.seconds:.0f}", f"{memory:.3g}, {products:.3g}, {launches:.3g}", f"{least:.3g} to {most:.3g}")
    return "| " + " | ".join(map(str, cells)) + " |"


def main(options: Options) -> None:
    """Print a line for each way."""
    with described_gpu() as device:
        import jax

        if not options.json:
            print(
                f"JAX {jax.__version__}, compiled for {device.device_kind}, described, not there; {options.seeds} seeds"
            )
            print(
                "A training step's kernels (of one seed under map, of all under vmap) and MB per seed; minutes of a row"
            )
            print(f"of all seeds and epochs are ESTIMATES: bytes at {BANDWIDTH / 1e12} TB/s, operations at the data")
            print(f"sheet's peak, {LAUNCH * 1e6:.0f} us a kernel.  All hidden units are trained.\n{HEAD}", flush=True)
        for way in map(str.strip, options.ways.split(",")):
            for method in map(str.strip, options.methods.split(",")):
                found = counted(way, options.seeds, device, method)
                name = way if method == "signed" else f"{way}, {method}"
                print(
                    json.dumps({"way": way, "method": method} | asdict(found))
                    if options.json
                    else line(name, found, options.seeds),
                    flush=True,
                )


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
