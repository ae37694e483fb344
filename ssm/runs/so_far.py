"""A run that isn't finished, as one of so many epochs as it has reached: the same settings, and its checkpoints."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ssm.errors import UserError
from ssm.recipes.config import Config
from ssm.runs import checkpoint
from ssm.runs.names import config_hash, member_key
from ssm.training.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """Seeds that stand at the same epoch: what to train, of which nothing is left to be trained.

    config: that of the run, but for its epochs.  snapshots: of these seeds under that configuration.
    """

    config: Config
    seeds: Sequence[int]
    snapshots: Sequence[Snapshot]


def so_far(
    config: Config, folder: Path, identity: str, log: Callable[[str], None], finished: Collection[int] = ()
) -> list[SoFar]:
    """Return what a run's unfinished seeds have reached, by their last checkpoints, the most epochs first.

    identity: fingerprint of the data.  finished: the run's finished seeds, whose group may still have a checkpoint.
    `log` is given a line for each checkpoint that has to be skipped.

    Rates are those of the run: a cosine ends where the whole run would have ended.

    Raises:
        UserError: if the folder has no checkpoint, or only another version's, or such of other data.
    """
    snapshots = checkpoint.newest(folder / checkpoint.FOLDER, identity, log)
    best, prefix = checkpoint.furthest(snapshots), f"{config_hash(config.as_dict())}/"
    done = {member_key(config.as_dict(), seed) for seed in finished}
    found: dict[int, list[Snapshot]] = {}
    for snapshot in snapshots:
        mine = (key for key in snapshot.members if key.startswith(prefix) and key not in done)
        if own := [key for key in mine if best[key] is snapshot]:
            found.setdefault(snapshot.epoch, []).append(snapshot.of(own))
    if not found:
        raise UserError(f"{folder} has no checkpoint: none of its seeds is in training by itself, or none was saved yet")
    return [_at(replace(config, epochs=epoch), found[epoch]) for epoch in sorted(found, reverse=True)]


def _at(config: Config, snapshots: Sequence[Snapshot]) -> SoFar:
    seeds = [[int(key.rpartition("/")[2]) for key in snapshot.members] for snapshot in snapshots]
    renamed = [
        replace(snapshot, members=tuple(member_key(config.as_dict(), seed) for seed in own))
        for snapshot, own in zip(snapshots, seeds, strict=True)
    ]
    return SoFar(config=config, seeds=sorted(sum(seeds, [])), snapshots=renamed)
