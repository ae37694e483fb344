"""The memory that a job takes, as its compiled program says: on a GPU, whose compiler plans all of it ahead.

The compilation is not lost where JAX's compilation cache is on: training finds the same program there.
"""

import math
from collections.abc import Callable

import jax

from ssm.runs.estimate import Memory
from ssm.runs.job import Job
from ssm.runs.memory import out_of_memory
from ssm.training.ahead import device_bytes, lowered_epoch
from ssm.training.epoch import make_program
from ssm.training.task import SeedLoop


def compiled_memory(job: Job, *, devices: int, loop: SeedLoop) -> Memory:
    """Return the function from a group's seeds to the bytes that training them takes on each device; it compiles.

    Infinity where the device has no memory to compile it.
    """
    places = jax.local_devices()[:devices]
    train, test, order = job.make_data()
    program = make_program(job.task, loop=loop, devices=places)

    def memory(group: int) -> float:
        padded = group + -group % devices
        lowered = lowered_epoch(job.task, program, padded, train=train, test=test, order=order)
        try:
            return device_bytes(lowered.compile())
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            return math.inf

    return memory


def compiled_group(memory: Callable[[int], float], group: int, available: float) -> int:
    """Return how many of a group's seeds may be trained at once; it asks seldom, as each time is a compilation."""
    while group > 1 and (needed := memory(group)) > available:
        share = available / needed if math.isfinite(needed) else 0.5
        group = max(1, min(group - 1, int(group * share)))
    return group
