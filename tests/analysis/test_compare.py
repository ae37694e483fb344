import math
from pathlib import Path

import pytest
from scipy.stats import t

from ssm.analysis import compare
from ssm.runs.reader import FinishedRun


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
