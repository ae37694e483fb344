"""The epoch's program compiled before there is anything to train: for its memory, or for devices that are not there."""

from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from ssm.training.batches import count_samples, steps_per_epoch
from ssm.training.epoch import Begin, EpochInputs, Program
from ssm.training.settings import pinned
from ssm.training.task import Task


@pinned()
def epoch_arguments(
    task: Task, program: Program, group: int, *, train: Any, test: Any, order: Any = None
) -> tuple[Any, ...]:
    """Return the shapes of what a task's epoch takes for `group` seeds, a multiple of the program's devices.

    train, test, order: arrays or their shapes.  Nothing is computed or placed.
    """
    spread, shared = program.shardings
    steps = steps_per_epoch(count_samples(train), task.batch_size) * task.passes
    begin = Begin(np.zeros(group, np.uint32), {name: np.ones(group, np.float32) for name in task.numbers})
    rates = np.zeros((group, steps), np.float32)
    given = EpochInputs(begin.seed, rates, rates, np.ones(group, bool))
    state = jax.eval_shape(program.start, begin)
    return *_shapes((state, given), spread), *_shapes((np.uint32(0), order, train, test), shared)


def _shapes(tree: Any, sharding: NamedSharding) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)


def lowered_epoch(task: Task, program: Program, group: int, **data: Any) -> jax.stages.Lowered:
    """Return a task's epoch for `group` seeds, to be compiled; arguments as `epoch_arguments` takes them."""
    return program.lower((), *epoch_arguments(task, program, group, **data))


def device_bytes(compiled: jax.stages.Compiled) -> float:
    """Return the bytes that a compiled program takes on a device: arguments, what it makes beside them, temporaries."""
    found: Any = compiled.memory_analysis()
    made = found.output_size_in_bytes - found.alias_size_in_bytes  # what is donated is counted with the arguments
    return float(found.argument_size_in_bytes + made + found.temp_size_in_bytes)
