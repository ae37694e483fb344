import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from ssm.analysis import compare
from ssm.analysis.statistics import quantile_range, std_from_quantiles, welch, welch_from_summary
from ssm.runs.reader import FinishedRun
from ssm.runs.statistics import interval


def test_interval_of_known_values():
    found = interval([0.0, 1.0, 2.0, 3.0, 4.0])
    assert found == pytest.approx((2.0, 0.2, 3.8, math.sqrt(2.5)))


def test_interval_of_one_value_has_no_spread():
    assert interval([3.0]) == (3.0, 3.0, 3.0, None)


def test_interval_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no values"):
        interval([])


def test_the_distance_of_quantiles_by_hand():
    # Two values are on average 2 / sqrt(pi) apart, and the quantiles a tenth of that closer; of three the largest is on
    # average 3 / (2 sqrt(pi)), and its quantile 0.9 of that.
    assert quantile_range(2) == pytest.approx(0.9 * 2 / math.sqrt(math.pi), rel=1e-6)
    assert quantile_range(3) == pytest.approx(2 * 0.9 * 1.5 / math.sqrt(math.pi), rel=1e-6)
    assert quantile_range(100_000) == pytest.approx(2 * 1.6448536, rel=1e-4)


@pytest.mark.parametrize("runs", [3, 10, 50])
def test_a_standard_deviation_comes_back_from_quantiles(runs):
    draws = np.random.default_rng(0).normal(5, 2, (20_000, runs))
    lows, highs = np.quantile(draws, [0.05, 0.95], axis=1)
    assert std_from_quantiles(lows.mean(), highs.mean(), runs) == pytest.approx(2, rel=0.01)


def test_one_value_has_no_spread():
    assert std_from_quantiles(1.0, 1.0, 1) is None


def test_welch_by_hand():
    # Two samples of two: variances 2 and 8, standard error sqrt(1 + 4), t = 5 / sqrt(5),
    # degrees of freedom 25 / (1 + 16) = 25/17.
    expected = 2 * t.sf(math.sqrt(5), 25 / 17)
    assert welch([0.0, 2.0], [4.0, 8.0]) == pytest.approx(expected)
    assert welch_from_summary(1.0, math.sqrt(2), 2, 6.0, math.sqrt(8), 2) == pytest.approx(expected)


def test_welch_published_example():
    # Example 1 of Wikipedia's article "Welch's t-test", which prints p = 0.021.
    a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4]
    b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4]
    assert welch(a, b) == pytest.approx(0.021, abs=5e-4)


def test_welch_without_a_known_spread_says_nothing():
    assert welch([1.0], [1.0, 2.0]) is None
    assert welch([], [1.0, 2.0]) is None
    assert welch([1.0, 1.0], [1.0, 1.0]) is None
    assert welch_from_summary(1.0, None, 5, 1.0, 0.1, 5) is None
    assert welch([1.0, 1.0], [1.0, 2.0]) is not None


def run(accuracy, remaining):
    figures = {"test_accuracy": accuracy, "remaining_weights": remaining}
    summary = {name: {"values": dict(enumerate(values))} for name, values in figures.items()}
    return FinishedRun(Path("fcn"), {}, summary)


def test_both_figures_by_hand():
    # Accuracy: variances 2 and 8, standard error sqrt(1 + 4), t = 5 / sqrt(5), degrees of freedom 25 / (1 + 16).
    # Remaining weights: the same mean.
    found = compare(run([0.0, 2.0], [0.1, 0.3]), run([4.0, 8.0], [0.2, 0.2]))
    assert found.accuracy == pytest.approx(2 * t.sf(math.sqrt(5), 25 / 17))
    assert found.remaining == pytest.approx(1)


def test_what_is_undefined_is_none():
    assert compare(run([0.5], [0.1]), run([0.5, 0.6], [1.0, 1.0])) == (None, None)
