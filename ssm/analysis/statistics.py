"""What is said of a sample of runs: mean and 5 %/95 % quantiles, as in the paper, and Welch's t-test."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ssm.runs.statistics import interval

if TYPE_CHECKING:
    from ssm.runs.reader import FinishedRun


def quantile_range(n: int) -> float:
    """Return the expected distance from the 5 % to the 95 % quantile of n values of a standard normal distribution.

    The quantiles are interpolated linearly between the ordered values, as everywhere here.  It is 3.29 for many values,
    3.11 for 50, and 1.52 for 3.
    """
    from scipy.stats import beta, norm  # half a second, which most callers need not wait for

    place = 0.95 * (n - 1)
    below = min(int(place), n - 2)
    z = np.linspace(-9, 9, 4001)
    density, share = norm.pdf(z), norm.cdf(z)

    def expected(index: int) -> float:  # of the value with `index` smaller ones
        return float(np.trapezoid(z * density * beta.pdf(share, index + 1, n - index), z))

    return 2 * ((below + 1 - place) * expected(below) + (place - below) * expected(below + 1))


def std_from_quantiles(q05: float, q95: float, n: int) -> float | None:
    """Estimate a standard deviation from the 5 % and 95 % quantiles of n values, as if they were normal; in their unit.

    None for fewer than two values.  The paper prints nothing else of its runs' spread, and rounds it: say "estimate"
    wherever this enters.
    """
    return None if n < 2 else (q95 - q05) / quantile_range(n)


def welch(values: Sequence[float] | np.ndarray, other: Sequence[float] | np.ndarray) -> float | None:
    """Return the two-sided p of Welch's t-test that two samples, shapes (n,) and (m,), have the same mean.

    None where it is undefined: see `welch_from_summary`.
    """
    if len(values) == 0 or len(other) == 0:
        return None
    left, right = interval(values), interval(other)
    return welch_from_summary(left.mean, left.std, len(values), right.mean, right.std, len(other))


def welch_from_summary(
    mean1: float, std1: float | None, n1: int, mean2: float, std2: float | None, n2: int
) -> float | None:
    """Return the two-sided p of Welch's t-test from both samples' mean, standard deviation (n - 1) and size.

    None where it is undefined: a spread unknown (None), fewer than two values on a side, or no spread at all.
    """
    if std1 is None or std2 is None or n1 < 2 or n2 < 2 or (std1 == 0 and std2 == 0):
        return None
    from scipy.stats import ttest_ind_from_stats  # half a second, which most callers need not wait for

    return float(ttest_ind_from_stats(mean1, std1, n1, mean2, std2, n2, equal_var=False).pvalue)


class Comparison(NamedTuple):
    """Two-sided p of Welch's t-test of both figures; None where it is undefined (fewer than two seeds, no spread)."""

    accuracy: float | None
    remaining: float | None


def compare(a: "FinishedRun", b: "FinishedRun") -> Comparison:
    """Return p of the same mean test accuracy, and of the same mean share of remaining weights, in two runs.

    t = (x - y) / sqrt(s_x^2 / n + s_y^2 / m) over the seeds' final values, see `welch`.
    """
    figures = ("test_accuracy", "remaining_weights")
    return Comparison(*(welch(*(list(run.summary[figure]["values"].values()) for run in (a, b))) for figure in figures))
