"""What a run will need, said before it starts: memory from array sizes, time from one measured matrix product."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ssm.config import Config
from ssm.data import Dataset
from ssm.models import count_weights
from ssm.supermask import Supermask, layer_thresholds
from ssm.trees import flatten

RUNTIME_BYTES = 450e6
"""Python, JAX, XLA's compiler and the compiled programs: measured on the CPU, docs/speed.md."""
BYTES_PER_WEIGHT = 4 * 5 + 3
"""Per seed: scores and momentum, each once more as the new state is made, the frozen kernel; int8 signs and masks."""
OVERHEAD = 0.95
"""An epoch's time over that of the products timed here, which come with elementwise passes as a step's do: measured on
the CPU (0.494 s against 0.52 s), docs/speed.md."""


class Estimate(NamedTuple):
    """Of a run: weights of one net, bytes of memory, and seconds per epoch and seed."""

    weights: int
    bytes: float
    seconds: float


def count_masked(net: Supermask, example: jax.Array) -> int:
    """Return the number of weights of a net that its mask covers, without computing anything."""
    variables = jax.eval_shape(net.init, jax.random.key(0), example)
    scores = flatten(variables["params"]["net"])
    return count_weights([scores[path] for path in layer_thresholds(variables["frozen"])])


def estimate(net: Supermask, config: Config, dataset: Dataset, *, group: int, devices: int) -> Estimate:
    """Return what training needs with `group` seeds at once over `devices`; takes about half a second.

    Time: each weight takes part in one product forward and two backward (one in the first layer), and once more in
    the evaluation.
    """
    example = jnp.zeros((1, *dataset.train_images.shape[1:]))
    weights = count_masked(net, example)
    # On one host every CPU device's copy of the data is a copy in the same memory; the loaded arrays stay, too.
    data = (dataset.train_images.nbytes + dataset.test_images.nbytes) * (1 + devices)
    memory = RUNTIME_BYTES + data + group * weights * BYTES_PER_WEIGHT
    samples, tested = len(dataset.train_labels), len(dataset.test_labels)
    operations = 2.0 * weights * (samples * 2.2 + tested)
    rate = _rate(config.batch_size, jax.devices()[:devices])
    return Estimate(weights, memory, OVERHEAD * operations / rate)


def _rate(rows: int, devices: Sequence[Any]) -> float:
    """Return the devices' float32 rate at products of the net's kind, all busy at once, in operations per second."""
    repeat = jax.jit(lambda x, w: jax.lax.fori_loop(0, 100, lambda _, y: y + 1e-9 * (y[:, :1] + x) @ w, x @ w))
    operands = [jax.device_put((jnp.ones((rows, 784)), jnp.ones((784, 300))), device) for device in devices]
    jax.block_until_ready([repeat(*pair) for pair in operands])  # compiles
    start = time.perf_counter()
    jax.block_until_ready([repeat(*pair) for pair in operands])
    return len(devices) * 2.0 * rows * 784 * 300 * 101 / (time.perf_counter() - start)
