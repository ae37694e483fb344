"""What a run will need, said before it starts: memory from array sizes, time from one measured matrix product."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from ssm.recipes.config import Config
from ssm.data import Dataset
from ssm.recipes.config import Config
from ssm.supermask import Supermask, joined, module_collections, split
from ssm.training.epoch import initial_variables
from ssm.training.settings import pinned
from ssm.training.task import SeedLoop, Task
from ssm.trees import Tree, count_weights

Memory: TypeAlias = Callable[[int], float]
"""From a group's seeds to the bytes that training them takes."""
RUNTIME_BYTES = 450e6
"""Python, JAX, XLA's compiler and the compiled programs: measured on the CPU, docs/speed.md."""
BYTES_PER_WEIGHT = 4 * 7 + 3
"""Per seed: scores and momentum, each once more as the new state is made and once in a checkpoint, the frozen kernel;
int8 signs and masks."""
KEPT_FACTOR, KERNEL_FACTOR = 2.87, 30.7
"""A step's memory over the arrays that it keeps for its gradient, and what is added over its convolutions' kernels.

XLA's other buffers, and the kernels transformed for Winograd's form: fitted to the peaks of six nets, docs/speed.md.
"""
OVERHEAD = {
    "fcn": 0.95,
    **{"conv2": 0.91, "conv4": 0.74, "conv6": 0.67, "conv8": 0.67},
    **dict.fromkeys(("resnet20", "resnet56", "resnet110"), 1.7),
}
"""An epoch's time over that of the products timed here: measured on the CPU, docs/speed.md.

Winograd's form does with 16 products for 36, the better the more features; a ResNet's 16 filters are too few to keep a
processor busy.  Conv8, ResNet56 and ResNet110 have the factors of Conv6 and ResNet20.
"""
BACKWARD = {"fcn": 1.2, "conv": 2.0, "resnet": 2.0}
"""Operations of a gradient over those of a forward pass: two products a layer, one in the first, which for the FCN is
most of the net."""


class Estimate(NamedTuple):
    """Of a run: weights of one net, bytes of memory, and seconds per epoch and seed."""

    weights: int
    bytes: float
    seconds: float


@pinned()
def count_masked(net: Supermask, example: Any) -> int:
    """Return the number of weights of a net that its mask covers, without computing anything."""
    return count_weights(jax.eval_shape(net.masks, _shapes(net, example)))


def _shapes(net: Supermask, example: Any) -> Tree:
    return jax.eval_shape(lambda key: initial_variables(net, key, example), jax.random.key(0))


@pinned()
def estimate(
    task: Task, config: Config, dataset: Dataset, *, group: int, devices: int, loop: SeedLoop
) -> Estimate:
    """Return what training needs with `group` seeds at once over `devices`; takes a second or two."""
    net = task.net(task.numbers)
    kind = config.model.rstrip("0123456789")
    samples, tested = len(dataset.train_labels) * config.passes, len(dataset.test_labels)
    operations = forward_operations(net, task.example) * (samples * (1 + BACKWARD[kind]) + tested)
    rate = _rate(config.batch_size, jax.local_devices()[:devices])
    data_bytes = dataset.train_images.nbytes + dataset.test_images.nbytes
    memory = memory_needed(task, data_bytes, devices=devices, loop=loop)
    return Estimate(count_masked(net, task.example), memory(group), OVERHEAD[config.model] * operations / rate)


@pinned()
def memory_needed(task: Task, data_bytes: int, *, devices: int, loop: SeedLoop) -> Memory:
    """Return the function from a group's seeds to the bytes that training them takes.

    Those are the state of all seeds of the group, and what a step keeps for its gradient of each seed that runs at the
    same moment: one a device in a loop over seeds, all where they are vectorised.
    """
    net = task.net(task.numbers)
    variables = _shapes(net, task.example)
    kernels = 4 * count_weights([leaf for leaf in jax.tree.leaves(variables["params"]) if leaf.ndim == 4])
    step = round(KEPT_FACTOR * _step_bytes(task, net, variables) + KERNEL_FACTOR * kernels)
    weights = count_masked(net, task.example)
    # On one host every CPU device's copy of the data is a copy in the same memory; the loaded arrays stay, too.
    data = data_bytes * (1 + devices)

    def memory(group: int) -> float:
        together = min(group, devices) if loop == "map" else group
        return RUNTIME_BYTES + data + group * weights * BYTES_PER_WEIGHT + together * step

    return memory


def fitting_group(memory: Memory, group: int, available: float) -> int:
    """Return how many of a group's seeds may be trained at once so that they take no more than `available` bytes."""
    return next((count for count in range(group, 1, -1) if memory(count) <= available), 1)


def _step_bytes(task: Task, net: Supermask, variables: Tree) -> float:
    """Return the bytes that a step keeps of a forward pass for its gradient, and those of the gradient's own arrays."""
    inputs = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((task.batch_size, *leaf.shape[1:]), leaf.dtype), task.example
    )

    def pulled(variables, inputs):
        layers, others, state, fixed = split(variables)
        rest = module_collections(variables)
        weights = joined(net.learner.weights(layers, state, None), fixed, others)

        def forward(weights):
            return task.apply(net.module, {"params": weights, **rest}, inputs, train=True)

        return jax.vjp(forward, weights, has_aux=True)[1]

    kept = [math.prod(leaf.shape) * 4.0 for leaf in jax.tree.leaves(jax.eval_shape(pulled, variables, inputs))]
    return sum(kept) + 2 * max(kept)


def forward_operations(net: Supermask, example: Any) -> float:
    """Return the operations of one sample's forward pass: two for each weight that a sample meets, each time."""
    found: list[float] = []

    def count(function, args, kwargs, context):
        result = function(*args, **kwargs)
        module = context.module
        if isinstance(module, nn.Dense | nn.Conv) and context.method_name == "__call__":
            places = np.asarray(args[0].shape[1:-1])
            if isinstance(module, nn.Conv):  # not those of the result, which may be pooled already
                places = np.ceil(places / np.asarray(module.strides or 1))
            found.append(2.0 * math.prod(module.get_variable("params", "kernel").shape) * float(places.prod()))
        return result

    with nn.intercept_methods(count):
        jax.eval_shape(net.module.init, jax.random.key(0), example)
    return sum(found)


def _rate(rows: int, devices: Sequence[Any]) -> float:
    """Return the devices' float32 rate at products of the net's kind, all busy at once, in operations per second."""
    repeat = jax.jit(lambda x, w: jax.lax.fori_loop(0, 100, lambda _, y: y + 1e-9 * (y[:, :1] + x) @ w, x @ w))
    operands = [jax.device_put((jnp.ones((rows, 784)), jnp.ones((784, 300))), device) for device in devices]
    jax.block_until_ready([repeat(*pair) for pair in operands])  # compiles
    start = time.perf_counter()
    jax.block_until_ready([repeat(*pair) for pair in operands])
    return len(devices) * 2.0 * rows * 784 * 300 * 101 / (time.perf_counter() - start)
