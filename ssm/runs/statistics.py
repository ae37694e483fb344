"""A sample of seeds in three numbers: mean, 5 % and 95 % quantile, as in the paper."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """A sample's mean, 5 % and 95 % quantiles, and standard deviation (n - 1; None for one value)."""

    mean: float
    q05: float
    q95: float
    std: float | None


def interval(values: Sequence[float] | np.ndarray) -> Interval:
    """Sum up a sample of shape (n,); quantiles interpolate linearly.

    Raises:
        ValueError: for an empty sample.
    """
    sample = np.asarray(values, np.float64)
    if sample.size == 0:
        raise ValueError("no values to sum up")
    q05, q95 = np.quantile(sample, [0.05, 0.95], method="linear")
    std = float(sample.std(ddof=1)) if sample.size > 1 else None
    return Interval(float(sample.mean()), float(q05), float(q95), std)
