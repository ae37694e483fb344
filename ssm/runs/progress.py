"""What a user sees while seeds train: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ssm.training.loop import Progress as Told

LINE_SECONDS = 10.0


class Report(Protocol):
    """Called after each epoch of a group."""

    def __call__(self, told: Told) -> None: ...


def _text(told: Told) -> str:
    if not told.rows:
        return "no seed left"
    accuracy, remaining = (np.mean([row[name] for row in told.rows]) for name in ("test_accuracy", "remaining_weights"))
    return f"accuracy {accuracy:.2%}, remaining weights {remaining:.2%}"


@contextmanager
def reporter(*, total: int, epochs: int) -> Iterator[Report]:
    """Give a function that shows progress: epoch, mean accuracy, remaining weights, time left; all on stderr.

    `total` counts the epochs of all groups that are still to come, and `epochs` those of one seed.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console, total) as report:
            yield report
    else:
        yield _lines(total, epochs)


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
        yield lambda told: bar.update(task, advance=1, description=_text(told))


def _lines(total: int, epochs: int) -> Report:
    started = time.perf_counter()
    state = {"done": 0, "said": -LINE_SECONDS}

    def report(told: Told) -> None:
        state["done"] += 1
        elapsed = time.perf_counter() - started
        if elapsed - state["said"] < LINE_SECONDS and told.epoch != epochs and told.rows:
            return
        state["said"] = elapsed
        left = elapsed / state["done"] * (total - state["done"])
        seeds = f"{len(told.seeds)} seed(s) from {told.seeds[0]} on"
        print(
            f"{seeds}, epoch {told.epoch}/{epochs}: {_text(told)}, {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )

    return report
