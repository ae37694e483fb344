import signal

import pytest

from ssm.runs import saving as module
from ssm.runs.checkpoint import load
from ssm.errors import UserError
from ssm.runs.signals import Interrupted, Interrupts
from ssm.runs.journal import Journal, read_journal
from ssm.runs.saving import Keeper, Saving
from tests.support.snapshots import snapshot


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand; the one on the wall jumps back a year at every look."""
    now, wall = [0.0], [2e9]

    def jump():
        wall[0] -= 3e7
        return wall[0]

    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "time", jump)
    return now


@pytest.fixture
def kept(tmp_path):
    """Makes a keeper, with what it tells in a list."""
    logged, interrupts = [], Interrupts()

    def make(**saving):
        journal = Journal(tmp_path, logged.append)
        options = {"folder": tmp_path / "checkpoints", "identity": "data", "log": logged.append}
        return Keeper(saving=Saving(**saving), interrupts=interrupts, journal=journal, **options)

    make.logged, make.interrupts, make.folder = logged, interrupts, tmp_path / "checkpoints"  # type: ignore[attr-defined]
    return make


def epochs(folder):
    return sorted(load(path)[0].epoch for path in folder.glob("*.ckpt"))


def test_it_saves_after_every_so_many_epochs(kept, clock):
    after_epoch = kept(every=3, minutes=0)
    for epoch in range(1, 12):
        after_epoch(epoch, lambda epoch=epoch: snapshot(epoch))
    assert epochs(kept.folder) == [6, 9]


def test_it_saves_after_so_many_minutes_by_a_clock_that_does_not_jump(kept, clock):
    after_epoch = kept(minutes=2)
    for epoch in range(1, 8):
        clock[0] += 50
        after_epoch(epoch, lambda epoch=epoch: snapshot(epoch))
    assert epochs(kept.folder) == [3, 6]


def test_it_says_beforehand_when_something_is_due(kept, clock):
    keep = kept(every=3, minutes=2)
    assert [keep.due(epoch) for epoch in range(1, 7)] == [False, False, True, False, False, True]
    clock[0] += 120
    assert keep.due(1)
    keep(1, lambda: snapshot(1))
    assert not keep.due(2)
    kept.interrupts.caught = signal.SIGTERM
    assert keep.due(2)


def test_a_signal_saves_and_ends_training(kept, clock, tmp_path):
    after_epoch = kept(minutes=0)
    after_epoch(1, snapshot)
    kept.interrupts.caught = signal.SIGTERM
    with pytest.raises(Interrupted, match="stopped by SIGTERM") as stopped:
        after_epoch(2, lambda: snapshot(2))
    assert stopped.value.number == 15 and epochs(kept.folder) == [2]
    assert [event["event"] for event in read_journal(tmp_path)] == ["checkpoint", "interrupted"]


def test_what_can_not_be_saved_is_told_and_training_goes_on(kept, clock, monkeypatch):
    after_epoch = kept(every=1)
    after_epoch(1, lambda: snapshot(1))

    def full(path, *parts):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.checkpoint, "write_atomic", full)
    after_epoch(2, lambda: snapshot(2))
    assert epochs(kept.folder) == [1]
    assert kept.logged == [f"warning: no checkpoint of epoch 2: {kept.folder}: No space left on device; training continues"]
    kept.interrupts.caught = signal.SIGINT
    with pytest.raises(Interrupted, match="the last checkpoint is that of epoch 1"):
        after_epoch(3, lambda: snapshot(3))


@pytest.mark.parametrize("options", [{"every": 0}, {"minutes": -1.0}, {"minutes": float("nan")}])
def test_impossible_values(options):
    with pytest.raises(UserError, match="--checkpoint-"):
        Saving(**options)
