"""The epoch's program compiled before there is anything to train: for its memory, or for devices that are not there."""

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ssm.training.batches import count_samples, steps_per_epoch
from ssm.training.epoch import Begin, Devices, EpochInputs, Program
from ssm.training.settings import pinned
from ssm.training.task import Task


@pinned()
def lowered_epoch(
    task: Task, program: Program, group: int, *, devices: Devices, train: Any, test: Any, order: Any = None
) -> jax.stages.Lowered:
    """Return a task's epoch for `group` seeds on the program's devices, to be compiled; nothing is computed or placed.

    train, test, order: arrays or their shapes.  The group must be a multiple of the number of devices.
    """
    mesh = Mesh(list(devices), ("seeds",))
    spread, shared = NamedSharding(mesh, PartitionSpec("seeds")), NamedSharding(mesh, PartitionSpec())

    def shapes(tree: Any, sharding: NamedSharding) -> Any:
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)

    steps = steps_per_epoch(count_samples(train), task.batch_size) * task.passes
    begin = Begin(np.zeros(group, np.uint32), {name: np.ones(group, np.float32) for name in task.numbers})
    rates = np.zeros((group, steps), np.float32)
    given = EpochInputs(begin.seed, rates, rates, np.ones(group, bool))
    state = shapes(jax.eval_shape(program.start, begin), spread)
    return program.lower(state, shapes(given, spread), *shapes((np.uint32(0), order, train, test), shared))


def device_bytes(compiled: jax.stages.Compiled) -> float:
    """Return the bytes that a compiled program takes on a device: arguments, what it makes beside them, temporaries."""
    found: Any = compiled.memory_analysis()
    made = found.output_size_in_bytes - found.alias_size_in_bytes  # what is donated is counted with the arguments
    return float(found.argument_size_in_bytes + made + found.temp_size_in_bytes)
