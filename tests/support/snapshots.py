"""A snapshot of training that never was."""

import numpy as np

from ssm.plateau import PlateauState
from ssm.training.snapshot import Failure, Snapshot

MEMBERS = ("5f0c8a2155/0", "5f0c8a2155/3")


def snapshot(epoch=2, members=MEMBERS, value=0.5) -> Snapshot:
    count = len(members)
    state = PlateauState(scale=0.2, reductions=1, epoch=epoch, wait=0, cooldown=3, best=0.1 + 0.2, recent=[None, 1 / 3])
    rows = [[{"seed": seed, "epoch": 1, "train_loss": 1 / 3}] for seed in range(count)]
    return Snapshot(
        members=members,
        epoch=epoch,
        arrays={"['net']['kernel']": np.arange(count * 6, dtype=np.float32).reshape(count, 2, 3) * value},
        frozen=tuple("ab"[:count]),
        plateaus=(state,) * count,
        failures={1: Failure(1, "no weight is left in Dense_1")} if count > 1 else {},
        history=rows,
    )
