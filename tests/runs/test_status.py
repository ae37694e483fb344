import pytest

from ssm.errors import UserError
from ssm.runs.journal import Journal
from ssm.runs.lock import held
from ssm.runs.status import journals, status


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("ssm.runs.journal.time.time", lambda: now[0])
    return now


def epochs(journal, clock, count, *, seeds=2, seconds=10):
    for epoch in range(1, count + 1):
        clock[0] += seconds
        for seed in range(seeds):
            journal("epoch", seed=seed, epoch=epoch)


def test_a_run_that_goes_on_has_its_time_left(tmp_path, clock):
    journal = Journal(tmp_path, print)
    with held(tmp_path):
        journal("start", seeds=2, epochs=10, todo=20)
        assert status(tmp_path).left is None
        epochs(journal, clock, 4)
        found = status(tmp_path)
    assert (found.state, found.seeds, found.share, found.left) == ("runs", (0, 2), 0.4, 60.0)


@pytest.mark.parametrize(
    ("event", "state"),
    [("end", "finished"), ("interrupted", "stopped"), ("error", "failed"), ("checkpoint", "died")],
)
def test_a_run_that_has_ended_says_how(tmp_path, clock, event, state):
    journal = Journal(tmp_path, print)
    journal("start", seeds=2, epochs=4, todo=8)
    epochs(journal, clock, 2)
    journal(event, reason="why")
    clock[0] += 33
    found = status(tmp_path)
    assert (found.state, found.left, found.quiet) == (state, None, 33.0)
    assert found.share == (1.0 if event == "end" else 0.5)


def test_a_seed_set_aside_needs_no_more_epochs(tmp_path, clock):
    journal = Journal(tmp_path, print)
    journal("start", seeds=2, epochs=4, todo=8)
    epochs(journal, clock, 1)
    journal("bad_seed", seed=1, epoch=2, reason="no weight is left in Dense_0")
    found = status(tmp_path)
    assert (found.bad, found.share, found.reason) == (1, 5 / 8, "no weight is left in Dense_0")


def test_after_a_resume_the_last_start_counts(tmp_path, clock):
    journal = Journal(tmp_path, print)
    journal("start", seeds=2, epochs=4, todo=8)
    epochs(journal, clock, 3)
    journal("start", seeds=2, epochs=4, todo=4)
    epochs(journal, clock, 1)
    assert status(tmp_path).share == 0.5


def test_processes_that_share_a_run_are_added_up(tmp_path, clock):
    first, second = Journal(tmp_path, print), Journal(tmp_path, print, 1)
    for journal in (first, second):
        journal("start", seeds=1, epochs=4, todo=4)
    epochs(first, clock, 4, seeds=1)
    epochs(second, clock, 2, seeds=1)
    first("saved", seeds=1)
    first("end")
    found = status(tmp_path)
    assert (found.state, found.seeds, found.share) == ("died", (1, 2), 0.75)
    epochs(second, clock, 2, seeds=1)
    second("saved", seeds=1)
    second("end")
    assert status(tmp_path).state == "finished"


def test_folders_without_a_journal(tmp_path):
    with pytest.raises(UserError, match="no run in"):
        list(journals([tmp_path]))
    Journal(tmp_path / "a", print)
    (tmp_path / "a").mkdir()
    Journal(tmp_path / "a", print)("checkpoint")
    assert list(journals([tmp_path, tmp_path / "a"])) == [tmp_path / "a"]
    with pytest.raises(UserError, match="has no journal of a run"):
        status(tmp_path / "a")
