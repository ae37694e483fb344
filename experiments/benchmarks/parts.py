"""Times of the parts of an FCN step in the forms that were compared; run it on one idle core.

    taskset -c 0 python experiments/benchmarks/parts.py

Each form runs 100 times inside one compiled loop; the shortest of five loops counts.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from ssm.runs.program import run_program


@dataclass(frozen=True, kw_only=True)
class Options:
    """Time the parts of an FCN step."""

    repeats: int = 100
    """Runs inside a loop."""


def milliseconds(function: Callable, *operands, repeats: int) -> float:
    """Return the time of one call, its operands made to depend on the call before so that none is left out."""
    import jax
    import jax.numpy as jnp

    def again(carry, _):
        result = function(*jax.lax.optimization_barrier((*operands, carry))[:-1])
        return carry + 1e-9 * jnp.ravel(result)[0].astype(jnp.float32), jnp.ravel(result)[-1]

    loop = jax.jit(lambda start: jax.lax.scan(again, start, None, length=repeats))
    times = []
    for _ in range(6):  # the first one compiles
        start = time.perf_counter()
        jax.block_until_ready(loop(jnp.float32(0)))
        times.append(time.perf_counter() - start)
    return 1e3 * min(times[1:]) / repeats


def main(options: Options) -> None:
    import jax
    import jax.numpy as jnp
    from flax import linen as nn

    from ssm.models import elu
    from ssm.training.batches import reshuffled
    from ssm.training.devices import environment, use_host_devices

    use_host_devices(1)
    where = environment()
    print(f"{where['processor']}, JAX {where['jax']}")
    key = jax.random.key(0)
    x, w, g = (jax.random.normal(key, shape) for shape in ((128, 784), (784, 300), (128, 300)))
    gradient = {
        name: jax.grad(lambda h, form=form: jnp.sum(form(h) * h)) for name, form in (("own", elu), ("flax", nn.elu))
    }
    forms = {
        "first layer forward, kernel [in, out]": (lambda x, w: x @ w, x, w),
        "first layer forward, kernel [out, in]": (lambda x, w: w @ x.T, x, w.T),
        "first layer gradient, kernel [in, out]": (lambda x, g: x.T @ g, x, g),
        "first layer gradient, kernel [out, in]": (lambda x, g: g.T @ x, x, g),
        "ELU and its gradient, ours": (gradient["own"], g),
        "ELU and its gradient, flax.linen": (gradient["flax"], g),
        "order of 60,000, one sort of random bits": (lambda seed: reshuffled(seed, 0, 60_000), key),
        "order of 60,000, jax.random.permutation": (lambda seed: jax.random.permutation(seed, 60_000), key),
    }
    for name, (function, *operands) in forms.items():
        repeats = options.repeats if "order" not in name else 5
        print(f"{name:42s} {milliseconds(function, *operands, repeats=repeats):8.3f} ms", flush=True)


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
