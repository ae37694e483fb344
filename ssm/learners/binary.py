"""The binary Supermask: keep or hide each frozen weight."""

from collections.abc import Callable
from typing import Any

from jax import Array

from ssm.initializers import Initializer
from ssm.learners.base import SCORES, THRESHOLD, Learner, check_rules, layerwise
from ssm.learners.signed import Frozen
from ssm.ternary import binarize, reachable


def binary(*, scores: Initializer = SCORES, threshold: Callable[[Array], Any] = THRESHOLD) -> Learner:
    """Return the binary learner: weight = kernel * m, m = 1 where the score is above the upper threshold.

    scores: initialiser of the scores.  threshold: rule of the thresholds (`ssm.thresholds`), of which the upper one
    counts.  Source: the paper's figure bin_mask_comparison; docs/ledger.md, row 20.

    Raises UserError for scores or a threshold that are no functions.
    """
    check_rules(scores, threshold)

    def init(key, kernel):
        drawn = scores(key, kernel.shape, kernel.dtype)
        return drawn, Frozen(kernel, *threshold(drawn))

    def mask(drawn, state):
        return binarize(drawn, state.upper)

    def weight(drawn, state, key):
        return state.kernel * mask(drawn, state)

    def settled(drawn, state, reach):
        return reachable(drawn, reach)[1] < state.upper

    return layerwise(init, weight, mask, settled=settled, elementwise=True)
