"""Milliseconds per training step of the signed Supermask in PyTorch on a CPU: the peer to compare with.

It imports neither jax nor ssm and is run by the Python of an environment of its own:

    python3.11 -m venv VENV && VENV/bin/pip install torch==2.13.0 numpy
    VENV/bin/python experiments/benchmarks/peer.py --models=conv2,conv4,conv6 --threads=2 --out=peer.json

A step is the forward pass, the gradient and SGDW, in float32, with one batch of random images that stays in memory:
loading and standardising images are not in it.  Two warm-up steps are not counted.  Beside the median of the others
stands that of the time on the processor: with one thread, less than the other says that something else was running.

What made it faster than the plain form and is kept: channels last in memory; memory that freed tensors leave stays with
the process; ELU in place, and after the max-pool instead of before it, which is the same numbers (ELU is monotone).

FLOPs: two per multiply-add of the convolutions and dense layers, of three products per layer: forward, gradient of the
weights, gradient of the input.  The first layer has no gradient of its input, so it counts two.  A step of 128 images
of Conv2 is 33.2 GFLOP so (33.6 if the first layer counts three as well).
"""

import argparse
import ctypes
import importlib
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

try:
    torch: Any = importlib.import_module("torch")
except ImportError:
    torch = None

CHANNELS = {"conv2": (64,), "conv4": (64, 128), "conv6": (64, 128, 256), "conv8": (64, 128, 256, 512), "fcn": ()}
METHODS = {"signed": (0.05, 5e-4), "dense": (0.008, 5e-4)}  # learning rate, weight decay
THRESHOLD, MOMENTUM, WARM_UP = 0.01, 0.9, 2


def layers(model: str) -> list[tuple[tuple[int, ...], int]]:
    """Return each layer's kernel shape, [out, in, 3, 3] or [out, in], and at how many positions an image meets it."""
    found: list[tuple[tuple[int, ...], int]] = []
    if model == "fcn":
        widths = (784, 300, 100, 10)
    else:
        inputs, side = 3, 32
        for channels in CHANNELS[model]:
            found += [((channels, width, 3, 3), side * side) for width in (inputs, channels)]
            inputs, side = channels, side // 2
        widths = (inputs * side * side, 256, 256, 10)
    return found + [((outputs, inputs), 1) for inputs, outputs in itertools.pairwise(widths)]


def step_flops(model: str, batch: int) -> int:
    """Return the FLOPs of a training step, counted as the module says."""
    products = [positions * math.prod(shape) for shape, positions in layers(model)]
    return 2 * batch * (3 * sum(products) - products[0])


def make_masked() -> Callable:
    """Return the function of a score and its frozen weight that is the effective weight, straight-through."""
    # hardshrink keeps what is above its limit, the mask what is at the threshold, too: so the next smaller float32.
    threshold = torch.tensor(THRESHOLD)
    limit = torch.nextafter(threshold, torch.zeros(())).item()

    class Masked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, score, weight):
            ctx.save_for_backward(weight)
            return torch.nn.functional.hardshrink(score, limit).sign_().mul_(weight)

        @staticmethod
        def backward(ctx, gradient):  # pyright: ignore[reportIncompatibleMethodOverride]
            return gradient * ctx.saved_tensors[0], None

    return Masked.apply


def forward(images, kernels):
    """Return the logits: 3x3 convolutions in pairs with ELU and a max-pool, then dense layers."""
    functional = torch.nn.functional
    x = images
    for number, kernel in enumerate(kernels):
        if kernel.dim() == 4:
            x = functional.conv2d(x, kernel, padding=1)
            if number % 2:
                x = functional.max_pool2d(x, 2)
            x = functional.elu(x, inplace=True)
            continue
        if x.dim() == 4:
            x = x.permute(0, 2, 3, 1).flatten(1)  # channels last in memory as well: a view, no copy
        x = functional.linear(x, kernel)
        if number < len(kernels) - 1:
            x = functional.elu(x, inplace=True)
    return x


def sgdw(parameters, velocities, gradients, learning_rate: float, weight_decay: float) -> None:
    """Decay by `weight_decay`, not multiplied by the learning rate, then Nesterov momentum with the rate inside."""
    torch._foreach_mul_(parameters, 1 - weight_decay)
    torch._foreach_mul_(velocities, MOMENTUM)
    torch._foreach_add_(velocities, gradients, alpha=-learning_rate)
    torch._foreach_add_(parameters, velocities, alpha=MOMENTUM)
    torch._foreach_add_(parameters, gradients, alpha=-learning_rate)


def steps(model: str, method: str, batch: int, *, compiled: bool = False) -> Iterator[float]:
    """Train without end; yield the loss after every step.  `compiled`: loss and gradient by torch.compile."""
    generator = torch.Generator().manual_seed(0)

    def uniform(shape, bound):
        drawn = (2 * torch.rand(shape, generator=generator) - 1) * bound
        return drawn.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else drawn

    parameters, weights = [], []
    for shape, _ in layers(model):
        fan_in, fan_out = math.prod(shape[1:]), shape[0] * math.prod(shape[2:])
        if method == "signed":
            constant = math.sqrt((6 if model == "fcn" else 3) / fan_in)
            weights.append(torch.sign(uniform(shape, 1)) * constant)
            parameters.append(uniform(shape, math.sqrt(6 / (fan_in + fan_out))))
        else:
            parameters.append(uniform(shape, math.sqrt(4.5 / fan_in)))
        parameters[-1].requires_grad_()
    velocities = [torch.zeros_like(parameter) for parameter in parameters]
    images = torch.randn((batch, 784) if model == "fcn" else (batch, 3, 32, 32), generator=generator)
    if images.dim() == 4:
        images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(10, (batch,), generator=generator)
    masked = make_masked()

    def loss_of(parameters):
        kernels = list(map(masked, parameters, weights)) if weights else parameters
        return torch.nn.functional.cross_entropy(forward(images, kernels), labels)

    if compiled:
        loss_of = torch.compile(loss_of)
    while True:
        loss = loss_of(parameters)
        gradients = torch.autograd.grad(loss, parameters)  # fresh ones: nothing to set to zero
        with torch.no_grad():
            sgdw(parameters, velocities, gradients, *METHODS[method])
        yield loss.item()


def measure(model: str, method: str, batch: int, count: int, *, compiled: bool = False) -> dict[str, Any]:
    """Return the figures of one model."""
    train = steps(model, method, batch, compiled=compiled)
    walls, processors, loss = [], [], math.nan
    for number in range(WARM_UP + count):
        wall, processor = time.perf_counter(), time.process_time()
        loss = next(train)
        if number >= WARM_UP:
            walls.append(1e3 * (time.perf_counter() - wall))
            processors.append(1e3 * (time.process_time() - processor))
    median, gigaflops = statistics.median(walls), step_flops(model, batch) / 1e9
    return {
        "minimum_ms": min(walls),
        "median_ms": median,
        "maximum_ms": max(walls),
        "median_processor_ms": statistics.median(processors),
        "gflop": gigaflops,
        "gflop_per_s": 1e3 * gigaflops / median,
        "last_loss": loss,
    }


def prepare(threads: int) -> None:
    """Set up PyTorch and the allocator as fast as they go; call it before anything is computed."""
    torch.set_flush_denormal(True)
    torch.set_num_threads(threads)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:  # keep what tensors leave: fresh pages every step cost a fifth of Conv2's time
        mallopt(-4, 0)  # M_MMAP_MAX
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def read_options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the options; one that can't be used is one message on stderr and exit status 2."""
    parser.add_argument("--models", default="conv2,conv4,conv6", help=f"any of {', '.join(CHANNELS)}; commas between")
    parser.add_argument("--batch", type=int, default=128, help="images of a step")
    parser.add_argument("--steps", type=int, default=10, help="timed steps")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch")
    parser.add_argument(
        "--method", choices=tuple(METHODS), default="signed", help="signed Supermask or trained weights"
    )
    parser.add_argument("--compile", action="store_true", help="with torch.compile, which needs a C++ compiler")
    parser.add_argument("--out", type=Path, help="file for the figures, as JSON")
    options = parser.parse_args()
    options.models = options.models.split(",")
    unknown = [model for model in options.models if model not in CHANNELS]
    if unknown:
        parser.exit(2, f"{parser.prog}: no model is called {unknown[0]!r}; there are {', '.join(CHANNELS)}.\n")
    if min(options.batch, options.steps, options.threads) < 1:
        parser.exit(2, f"{parser.prog}: --batch, --steps and --threads must be at least 1.\n")
    return options


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options = read_options(parser)
    if torch is None:
        install = f"{sys.executable} -m pip install torch==2.13.0 numpy"
        parser.exit(2, f"{parser.prog}: PyTorch is missing; install it with: {install}\n")
    prepare(options.threads)
    settings = {"method": options.method, "batch": options.batch, "steps": options.steps, "threads": options.threads}
    way = "compiled" if options.compile else "eager"
    print(
        f"PyTorch {torch.__version__} {way}, float32, " + ", ".join(f"{k} {v}" for k, v in settings.items()), flush=True
    )
    figures: dict[str, Any] = {"torch": torch.__version__, "way": way, **settings, "models": {}}
    for model in options.models:
        row = figures["models"][model] = measure(
            model, options.method, options.batch, options.steps, compiled=options.compile
        )
        print(
            f"{model:6s} {row['median_ms']:9.2f} ms per step ({row['median_processor_ms']:.2f} on the processor), "
            f"{row['gflop']:.2f} GFLOP, {row['gflop_per_s']:.1f} GFLOP/s",
            flush=True,
        )
        if options.out is not None:
            try:
                options.out.write_text(json.dumps(figures, indent=2) + "\n")
            except OSError as error:
                parser.exit(2, f"{parser.prog}: {options.out} cannot be written: {error.strerror}\n")


if __name__ == "__main__":
    main()
