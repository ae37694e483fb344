"""For the benchmarks: ways to run the same training, their epochs as functions, and timing them by turns."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ssm.data import Dataset


@dataclass(frozen=True)
class Way:
    """One thing to time: a name, and how it differs from the signed net in float32, seeds one after another."""

    name: str
    method: str = "signed"
    precision: str = "float32"
    loop: str = "map"
    form: str = "auto"
    devices: int | None = None  # None: one per core
    seeds: int | None = None  # None: as many as the benchmark takes
    folded: bool | None = None


def random_images(train: int, test: int, *, classes: int = 10) -> Dataset:
    """Return random images of CIFAR's shape."""
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (count, 32, 32, 3), np.uint8) for count in (train, test)]
    labels = [rng.integers(0, classes, count, np.int32) for count in (train, test)]
    names = tuple(map(str, range(classes)))
    return Dataset(f"cifar{classes}", "made images", images[0], labels[0], images[1], labels[1], classes, names)


def epochs_of(trainer, config, seeds: int) -> Callable[[int], None]:
    """Return a function that trains the first so many seeds for one epoch, by its number, and waits for its end."""
    import jax

    from ssm.recipes.build import member
    from ssm.training.batches import count_samples, steps_per_epoch
    from ssm.training.epoch import EpochInputs
    from ssm.training.loop import beginning

    program = trainer.program
    members = [member(config, seed) for seed in range(seeds)]
    steps = steps_per_epoch(count_samples(trainer.train), config.batch_size) * config.passes
    learning, decay = (np.tile(rate, (seeds, 1)) for rate in members[0].schedule(np.arange(steps)))
    begin = beginning(members)
    given = program.place(EpochInputs(begin.seed, learning, decay, np.ones(seeds, bool)))
    state = [program.start(program.place(begin))]

    def epoch(number: int) -> None:
        more = program.share(np.uint32(number)), trainer.order, trainer.train, trainer.test
        state[0], info = program.epoch(state[0], given, *more)
        jax.block_until_ready(info)

    return epoch


def by_turns(ready: Mapping[str, tuple[Callable[[int], None], int]], rounds: int) -> dict[str, dict[str, float]]:
    """Return the seconds of each named function over the count beside it: minimum, median and maximum of the rounds.

    They take turns, so that a machine whose speed drifts slows all of them alike.  The first call compiles.
    """
    first: dict[str, float] = {}
    times: dict[str, list[float]] = {name: [] for name in ready}
    for number in range(rounds + 1):
        for name, (run, count) in ready.items():
            start = time.perf_counter()
            run(number)
            seconds = time.perf_counter() - start
            if number:
                times[name].append(seconds / count)
            else:
                first[name] = seconds
                print(f"compiled: {name}", file=sys.stderr, flush=True)
    return {
        name: {
            "minimum": min(found),
            "median": statistics.median(found),
            "maximum": max(found),
            "first_epoch_with_compilation": first[name],
        }
        for name, found in times.items()
    }
