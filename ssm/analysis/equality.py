"""How much the masks of several runs are alike, beside what chance would give."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int8


class Equality(NamedTuple):
    """Shares of elements that are alike, each with its expected value for independent masks.

    same: alike in every run.  pairwise: alike in two runs, averaged over all pairs; NaN for a single run.
    """

    same: float
    chance: float
    pairwise: float
    pairwise_chance: float


def equality(mask: Int8[np.ndarray, "seeds ..."], *, absolute: bool = False) -> Equality:
    """Return how much R masks of one layer are alike; with `absolute`, of their absolute values (kept or hidden).

    With c_iv the number of runs in which element i has the value v, n elements, and p_rv the share of v in run r:

        same = #{i: max_v c_iv = R} / n                    chance = sum_v prod_r p_rv
        pairwise = mean_i sum_v c_iv (c_iv - 1) / R (R - 1)
        pairwise_chance = sum_v ((sum_r p_rv)^2 - sum_r p_rv^2) / R (R - 1)

    Chance is the expected value for masks that are independent and have no structure but their own shares.
    Source: figures conv_mask_eq and all_mask_eq of the paper, which print `same`.
    """
    flat = np.abs(mask.reshape(len(mask), -1)) if absolute else mask.reshape(len(mask), -1)
    runs, pairs = len(flat), len(flat) * (len(flat) - 1)
    alike = (flat == value for value in ((0, 1) if absolute else (-1, 0, 1)))
    found = [(one.sum(axis=0), one.mean(axis=1)) for one in alike]
    counts, shares = (np.stack(part) for part in zip(*found, strict=True))  # [values, n] and [values, runs]
    return Equality(
        same=float((counts.max(axis=0) == runs).mean()),
        chance=float(shares.prod(axis=1).sum()),
        pairwise=float((counts * (counts - 1)).sum(axis=0).mean() / pairs) if pairs else float("nan"),
        pairwise_chance=(
            float((shares.sum(axis=1) ** 2 - (shares**2).sum(axis=1)).sum() / pairs) if pairs else float("nan")
        ),
    )
