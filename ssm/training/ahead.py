"""An epoch's program compiled before it is needed: for its memory, for devices that are not there, or meanwhile."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from ssm.training.batches import count_samples, steps_per_epoch
from ssm.training.epoch import Begin, EpochInputs, Program
from ssm.training.settings import pinned
from ssm.training.task import Task
from ssm.training.units import Sizes


@pinned()
def epoch_arguments(
    task: Task, program: Program, group: int, *, train: Any, test: Any, order: Any = None, state: Any = None
) -> tuple[Any, ...]:
    """Return the shapes of what a task's epoch takes for `group` seeds, a multiple of the program's devices.

    train, test, order, state: arrays or their shapes; by default the state is what the seeds begin with.  Nothing is
    computed or placed.
    """
    spread, shared = program.shardings
    steps = steps_per_epoch(count_samples(train), task.batch_size) * task.passes
    begin = Begin(np.zeros(group, np.uint32), {name: np.ones(group, np.float32) for name in task.numbers})
    rates = np.zeros((group, steps), np.float32)
    given = EpochInputs(begin.seed, rates, rates, np.ones(group, bool))
    state = jax.eval_shape(program.start, begin) if state is None else state
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


class Meanwhile:
    """Compiles epochs of other sizes in a thread, one after another, while training goes on.

    compile: compiles the epoch of some sizes so that `Program.epoch_of` finds it, as JAX does what `lower` compiled.
    """

    def __init__(self, compile: Callable[[Sizes], Any]) -> None:
        self._compile = compile
        self._pool = ThreadPoolExecutor(1)
        self._begun: dict[Sizes, Future[Any]] = {}

    def begin(self, sizes: Sizes) -> None:
        """Begin to compile the epoch of these sizes, unless that has been done."""
        if sizes not in self._begun:
            self._begun[sizes] = self._pool.submit(self._compile, sizes)

    def finish(self, sizes: Sizes) -> None:
        """Wait until the epoch of these sizes is compiled, if that was begun.

        What went wrong is not raised: where the program is needed it is then compiled, which says it.
        """
        if sizes in self._begun:
            wait([self._begun[sizes]])
