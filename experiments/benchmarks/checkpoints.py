"""What checkpoints cost: the time of one, of all seeds of the FCN at once, and its share of the default interval.

    python experiments/benchmarks/checkpoints.py --seeds=50

Also the time to take one up again.  Random images stand in for MNIST: they take the same time.
"""

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ssm.runs.program import run_program
from ssm.runs.saving import Saving


@dataclass(frozen=True, kw_only=True)
class Options:
    """Time checkpoints."""

    seeds: int = 50
    """Seeds in the checkpoint."""
    rounds: int = 5
    """Checkpoints."""
    out: Path | None = None
    """Folder to write to, whose disk counts (default: a temporary one)."""


def main(options: Options) -> None:
    import jax
    import numpy as np

    from ssm.data import Dataset
    from ssm.plateau import start
    from ssm.recipes.build import member
    from ssm.recipes.build import trainer as make_trainer
    from ssm.recipes.config import resolve
    from ssm.runs import checkpoint
    from ssm.training import devices
    from ssm.training.loop import beginning
    from ssm.training.snapshot import Snapshot, frozen_hashes, restored, stored_arrays

    devices.use_host_devices()
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (256, 28, 28, 1), np.uint8), rng.integers(0, 10, 256, np.int32)
    data = Dataset("mnist", "made images", images, labels, images, labels, 10, tuple("0123456789"))
    named = {"model": "fcn", "method": "signed", "preset": "default", "dataset": "mnist"}
    config = resolve(**named, samples=256, overrides={})
    trainer = make_trainer(config, data, resumable=True)
    count = -(-options.seeds // trainer.devices) * trainer.devices
    state = trainer.program.start(trainer.program.place(beginning([member(config, seed) for seed in range(count)])))
    members = tuple(map(str, range(count)))
    taken: dict[str, list[float]] = {"hash of frozen weights": [], "save": [], "load and restore": []}

    def timed(name, do):
        began = time.perf_counter()
        result = do()
        jax.block_until_ready(result) if isinstance(result, tuple) else None
        taken[name].append(time.perf_counter() - began)
        return result

    with tempfile.TemporaryDirectory(dir=options.out) as folder:
        for epoch in range(1, options.rounds + 1):
            frozen = timed("hash of frozen weights", lambda: frozen_hashes(state, count, updated=False))

            def snapshot(frozen=frozen, epoch=epoch):
                return Snapshot(
                    members=members,
                    epoch=epoch,
                    arrays=stored_arrays(state, count, updated=False),
                    frozen=frozen,
                    plateaus=(start(),) * count,
                    failures={},
                    history=[[]] * count,
                )

            path = timed("save", lambda take=snapshot: checkpoint.save(Path(folder), take(), "data"))
            size = path.stat().st_size
            timed(
                "load and restore",
                lambda path=path, frozen=frozen: restored(
                    trainer.program, state, checkpoint.load(path)[0], members, frozen, range(count), updated=False
                ),
            )
    minutes = Saving().minutes
    print(f"{devices.environment()['processor']}, {count} seeds, {size / 1e6:.0f} MB a checkpoint")
    for name, seconds in taken.items():
        print(f"{name:24s} {statistics.median(seconds):.2f} s (median of {options.rounds})")
    print(f"a checkpoint every {minutes:g} minutes: {statistics.median(taken['save']) / minutes / 60:.2%} of the time")


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
