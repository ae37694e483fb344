import io
import os
import sys

import pytest
from rich.console import Console

from ssm.runs import progress
from ssm.runs.progress import reporter
from ssm.training.loop import Progress


def made(epoch, *, seeds=(0, 1), accuracy=(0.9, 0.8)):
    rows = [{"test_accuracy": value, "remaining_weights": 0.05} for value in accuracy]
    return Progress(seeds, epoch, rows, seconds=1.0, failures={})


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until `clock[0]` is set, in seconds."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_without_a_terminal_there_are_plain_lines_on_stderr(capsys, clock):
    with reporter(total=4, epochs=2) as report:
        for second, (seeds, epoch) in enumerate([((0, 1), 1), ((0, 1), 2), ((2, 3), 1), ((2, 3), 2)], start=1):
            clock[0] = 100.0 + 20 * second
            report(made(epoch, seeds=seeds))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "2 seeds, epoch 1/2: accuracy 85.00%, remaining weights 5.00%, 60 s left",
        "2 seeds, epoch 2/2: accuracy 85.00%, remaining weights 5.00%, 40 s left",
        "2 seeds, epoch 1/2: accuracy 85.00%, remaining weights 5.00%, 20 s left",
        "2 seeds, epoch 2/2: accuracy 85.00%, remaining weights 5.00%, 0 s left",
    ]


def test_lines_are_at_least_ten_seconds_apart_but_the_first_and_last_epoch_are_said(capsys, clock):
    with reporter(total=30, epochs=30) as report:
        for epoch in range(1, 31):
            clock[0] += 1.0
            report(made(epoch))
    epochs = [line.split("epoch ")[1].split("/")[0] for line in capsys.readouterr().err.splitlines()]
    assert epochs == ["1", "11", "21", "30"]


def test_a_group_without_a_seed_left_is_said_at_once(capsys, clock):
    with reporter(total=30, epochs=30) as report:
        report(made(1))
        report(made(2, accuracy=()))
    assert capsys.readouterr().err.splitlines()[1].startswith("2 seeds, epoch 2/30: no seed left")


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    screen = io.StringIO()
    monkeypatch.setattr(
        progress, "Console", lambda **options: Console(**options | {"file": screen}, force_terminal=True, width=120)
    )
    with reporter(total=4, epochs=2) as report:
        for epoch in (1, 2, 1):
            report(made(epoch))
    shown = screen.getvalue()
    assert "compiling" in shown  # before the first epoch
    assert "3/4" in shown and "accuracy 85.00%, remaining weights 5.00%" in shown
    assert capsys.readouterr() == ("", "")


def test_an_error_within_ends_the_bar_and_goes_on(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=screen, force_terminal=True, width=120))
    with pytest.raises(KeyboardInterrupt), reporter(total=2, epochs=2):
        raise KeyboardInterrupt
    assert screen.getvalue().endswith("\x1b[?25h")  # the cursor is shown again


def test_one_seed_is_named_and_metrics_of_ones_own_are_a_loss(capsys, clock):
    with reporter(total=1, epochs=1) as report:
        report(Progress((7,), 1, [{"test_loss": 0.25, "remaining_weights": 0.05}], seconds=1.0, failures={}))
    assert capsys.readouterr().err == "seed 7, epoch 1/1: test loss 0.25, remaining weights 5.00%, 0 s left\n"


@pytest.mark.parametrize("ends", [os.pipe, lambda: os.openpty()], ids=["pipe", "terminal"])
def test_where_the_reader_is_gone_training_goes_on(monkeypatch, ends):
    read, write = ends()
    with open(write, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with reporter(total=2, epochs=2) as report:
            report(made(1))
            os.close(read)
            report(made(2))
