"""A stopped run's results are, bit for bit, those of a run of as many epochs."""

import dataclasses

import pytest

from ssm.errors import UserError
from ssm.runs import checkpoint
from ssm.runs.job import recipe_job
from ssm.runs.names import member_key
from ssm.runs.so_far import so_far
from tests.support.runs import Crash, content, crashing, run_config, same_content, short

SEEDS = [0, 3]


def stopped(config, digits, out):
    """A run that was killed in its third epoch: its folder, and the data's fingerprint."""
    with pytest.raises(Crash):
        run_config(config, digits, SEEDS, out=out, **crashing(3))
    job = recipe_job(config, digits)
    return job.folder(out), job.about["data"]


@pytest.mark.parametrize("schedule", ["exponential", "cosine"])
def test_two_of_four_epochs_are_a_run_of_two(digits, tmp_path, schedule):
    config = short(digits, schedule=schedule)
    folder, data = stopped(config, digits, tmp_path / "stopped")
    before = {path: path.read_bytes() for path in folder.rglob("*.ckpt")}
    (found,) = so_far(config, folder, data, print)
    assert found.seeds == SEEDS and found.config == dataclasses.replace(config, epochs=2)
    logged = []
    ended = run_config(
        found.config, digits, SEEDS, out=tmp_path / "stopped", snapshots=found.snapshots, log=logged.append
    )
    assert "resuming 2 seeds after epoch 2" in logged
    same_content(content(ended), content(run_config(found.config, digits, SEEDS, out=tmp_path / "two")))
    assert {path: path.read_bytes() for path in folder.rglob("*.ckpt")} == before
    whole = run_config(config, digits, SEEDS, out=tmp_path / "stopped")
    same_content(content(whole), content(run_config(config, digits, SEEDS, out=tmp_path / "whole")))


def test_seeds_at_different_epochs_are_runs_of_their_own(digits, tmp_path):
    config = short(digits)
    folder, data = stopped(config, digits, tmp_path)
    (path, _) = sorted(folder.rglob("*.ckpt"))  # of epochs 1 and 2
    early, _ = checkpoint.load(path)
    key = member_key(config.as_dict(), 7)
    other = dataclasses.replace(early.of(early.members[:1]), members=(key,))
    strange = dataclasses.replace(other, members=(f"{'0' * 10}/8",), epoch=3)
    for snapshot in (other, strange):
        checkpoint.save(folder / "checkpoints", snapshot, data)
    found = so_far(config, folder, data, print)
    assert [(one.config.epochs, one.seeds) for one in found] == [(2, SEEDS), (1, [7])]
    (left,) = so_far(config, folder, data, print, finished=[7, SEEDS[0]])
    assert (left.config.epochs, left.seeds) == (2, SEEDS[1:])


def test_a_seed_of_a_group_that_was_halved_is_there_once(digits, tmp_path):
    config = short(digits)
    folder, data = stopped(config, digits, tmp_path)
    _, later = sorted(folder.rglob("*.ckpt"))  # of epochs 1 and 2
    half, _ = checkpoint.load(later)
    later.unlink()
    checkpoint.save(folder / "checkpoints", half.of(half.members[:1]), data)
    found = so_far(config, folder, data, print)
    assert [(one.config.epochs, one.seeds) for one in found] == [(2, SEEDS[:1]), (1, SEEDS[1:])]


def test_nothing_to_take_is_an_error(digits, tmp_path):
    config = short(digits)
    run = run_config(config, digits, [0], out=tmp_path)
    with pytest.raises(UserError, match=rf"{run.folder} has no checkpoint"):
        so_far(config, run.folder, "0" * 16, print)
