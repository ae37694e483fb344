"""What a user sees while seeds train: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ssm.runs.output import lossy
from ssm.training.loop import Progress as EpochProgress

LINE_SECONDS = 10.0


def counted(count: int, noun: str) -> str:
    """Return a number of things in words: `1 seed`, `5 seeds`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class Report(Protocol):
    """Called after each epoch of a group."""

    def __call__(self, now: EpochProgress) -> None: ...


def _text(now: EpochProgress) -> str:
    if not now.rows:
        return "no seed left"
    # A user's own metrics may have no accuracy among them.
    name = next((name for name in ("test_accuracy", "test_loss") if name in now.rows[0]), "test_loss")
    value, remaining = (np.mean([row[key] for row in now.rows]) for key in (name, "remaining_weights"))
    shown = f"accuracy {value:.2%}" if name == "test_accuracy" else f"test loss {value:.4g}"
    units = f", live units {np.mean([row['live_units'] for row in now.rows]):.0f}" if "live_units" in now.rows[0] else ""
    return f"{shown}, remaining weights {remaining:.2%}{units}"


@contextmanager
def reporter(*, total: int, epochs: int) -> Iterator[Report]:
    """Give a function that shows progress: epoch, mean accuracy, remaining weights, time left; all on stderr.

    `total` counts the epochs of all groups that are still to come, and `epochs` those of one seed.
    """
    screen = lossy(sys.stderr)
    console = Console(file=screen)
    if console.is_terminal:
        with _bar(console, total) as report:
            yield report
    else:
        yield _lines(screen, total, epochs)


@contextmanager
def _bar(console: Console, total: int) -> Iterator[Report]:
    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("compiling", total=total)
        yield lambda now: bar.update(task, advance=1, description=_text(now))


def _lines(screen: TextIO, total: int, epochs: int) -> Report:
    started = time.perf_counter()
    state = {"done": 0, "said": -LINE_SECONDS}

    def report(now: EpochProgress) -> None:
        state["done"] += 1
        elapsed = time.perf_counter() - started
        if elapsed - state["said"] < LINE_SECONDS and now.epoch != epochs and now.rows:
            return
        state["said"] = elapsed
        left = elapsed / state["done"] * (total - state["done"])
        seeds = f"{len(now.seeds)} seeds" if len(now.seeds) > 1 else f"seed {now.seeds[0]}"
        print(
            f"{seeds}, epoch {now.epoch}/{epochs}: {_text(now)}, {left:.0f} s left",
            file=screen,
            flush=True,
        )

    return report
