"""Whether chance alone explains the difference of two runs."""

from typing import NamedTuple

from ssm.runs.reader import FinishedRun
from ssm.statistics import welch


class Comparison(NamedTuple):
    """Two-sided p of Welch's t-test of both figures; None where it is undefined (fewer than two seeds, no spread)."""

    accuracy: float | None
    remaining: float | None


def compare(a: FinishedRun, b: FinishedRun) -> Comparison:
    """Return p of the same mean test accuracy, and of the same mean share of remaining weights, in two runs.

    t = (x - y) / sqrt(s_x^2 / n + s_y^2 / m) over the seeds' final values, see `ssm.statistics.welch`.
    """
    figures = ("test_accuracy", "remaining_weights")
    return Comparison(*(welch(*(list(run.summary[figure]["values"].values()) for run in (a, b))) for figure in figures))
