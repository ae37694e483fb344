"""GFLOP/s of each form of a 3 x 3 convolution, by layer: where the rules in ssm/ops/convolution.py come from.

    taskset -c 0 python experiments/benchmarks/convolutions.py

Forward, and forward with both gradients (three products are counted), inside `lax.scan`, as in training.  Autodiff's
weight gradient of XLA's form is left out: inside a scan on a CPU it takes minutes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tyro

from ssm.runs.program import run_program

# (side, inputs, outputs) of Conv2 to Conv8, then of the ResNets.
LAYERS = (
    *((32, 3, 64), (32, 64, 64), (16, 64, 128), (16, 128, 128)),
    *((8, 128, 256), (8, 256, 256), (4, 256, 512), (4, 512, 512)),
    *((32, 3, 16), (32, 16, 16), (32, 24, 24), (32, 32, 32), (32, 48, 48), (16, 32, 32), (8, 64, 64)),
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Time the forms of a convolution."""

    batch: int = 128
    """Images."""
    blocks: tyro.conf.UseAppendAction[tuple[int, ...]] = ()
    """Tiles of 2 x 2 outputs in a block, instead of the library's; several may be given."""


def best_seconds(function: Callable[[Any], Any], state: Any, repeats: int = 3) -> float:
    """Return the shortest mean time of a function from a state to the next, inside a scan."""
    import jax

    run = jax.jit(lambda state: jax.lax.scan(lambda s, _: (function(s), None), state, None, length=repeats)[0])
    jax.block_until_ready(run(state))  # compiles
    times = []
    for _ in range(3):
        start = time.perf_counter()
        jax.block_until_ready(run(state))
        times.append((time.perf_counter() - start) / repeats)
    return min(times)


def rates(form: str, batch: int, side: int, inputs: int, outputs: int) -> str:
    """Return the rates of one form and layer, as text."""
    import jax
    import jax.numpy as jnp

    from ssm.ops.convolution import NUMBERS, conv_general_dilated

    x = jax.random.normal(jax.random.key(0), (batch, side, side, inputs))
    w = jax.random.normal(jax.random.key(1), (3, 3, inputs, outputs)) / (9 * inputs) ** 0.5
    g = jax.random.normal(jax.random.key(2), (batch, side, side, outputs))
    flops = 2 * batch * side * side * 9 * inputs * outputs

    def convolve(x, w):
        return conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NUMBERS, form=form)  # type: ignore[arg-type]

    def forward(state):  # each call needs the result of the one before
        x, w = state
        return x + 1e-9 * convolve(x, w)[..., :1], w

    def both(state):
        x, w = state
        dx, dw = jax.grad(lambda x, w: jnp.vdot(convolve(x, w), g), (0, 1))(x, w)
        return x + 1e-9 * dx, w + 1e-9 * dw

    text = f"{flops / best_seconds(forward, (x, w)) / 1e9:4.0f}"
    return text if form == "xla" else f"{text} {3 * flops / best_seconds(both, (x, w)) / 1e9:4.0f}"


def main(options: Options) -> None:
    from ssm.ops import convolution
    from ssm.training import devices

    devices.use_host_devices(1)
    where = devices.environment()
    print(f"{where['processor']}, JAX {where['jax']}, batch {options.batch}: GFLOP/s forward, and with both gradients")
    for tiles in options.blocks or (convolution.TILES,):
        convolution.TILES = tiles
        for layer in LAYERS:
            found = [f"{form} {rates(form, options.batch, *layer)}" for form in ("xla", "im2col", "winograd")]
            print(f"{tiles:5d} tiles  {'{} x {} -> {}'.format(*layer):18s}" + "   ".join(found), flush=True)


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
