"""The signed Supermask: keep, hide or invert each frozen weight."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int8

from ssm.initializers import Initializer
from ssm.learners.base import SCORES, THRESHOLD, Learner, check_rules, layerwise
from ssm.ternary import reachable, ternarize


class Frozen(NamedTuple):
    """A layer's frozen kernel, and the two thresholds of its mask: scalars of the scores' dtype."""

    kernel: Float[Array, "..."]
    lower: Float[Array, ""]
    upper: Float[Array, ""]


class Folded(NamedTuple):
    """A layer whose weights are +constant or -constant: their `signs` are folded into the scores (see `signed`)."""

    constant: Float[Array, ""]
    signs: Int8[Array, "..."]
    lower: Float[Array, ""]
    upper: Float[Array, ""]

    @property
    def kernel(self) -> Float[Array, "..."]:
        """The frozen kernel; of stacked seeds, theirs along the same first axes."""
        constant = self.constant.reshape(self.constant.shape + (1,) * (self.signs.ndim - self.constant.ndim))
        return constant * self.signs.astype(constant.dtype)


def signed(
    *,
    scores: Initializer = SCORES,
    threshold: Callable[[Array], Any] = THRESHOLD,
    folded: bool = False,
) -> Learner:
    """Return the paper's learner: weight = kernel * mask(score), a mask in {-1, 0, 1}.

    scores: initialiser of the scores.  threshold: rule of the two thresholds (`ssm.thresholds`), fixed once the scores
    are drawn.  Gradients go straight through the mask.  Source: equation 1 of the paper.

    `folded` is a faster form of the same for layers whose weights are +c or -c under thresholds -tau and +tau above
    0: the parameters are then score * sign(kernel), and no step reads the kernels.  Masks and weights are the same bit
    for bit, because sign flips are exact and the mask, the gradient, decay and momentum are odd in the score
    (docs/ledger.md, "A symmetry worth knowing").  That the conditions hold is up to the caller.

    Raises UserError for scores or a threshold that are no functions.
    """
    check_rules(scores, threshold)

    def init(key, kernel):
        drawn = scores(key, kernel.shape, kernel.dtype)
        lower, upper = threshold(drawn)
        if not folded:
            return drawn, Frozen(kernel, lower, upper)
        signs = jnp.where(kernel < 0, -1, 1).astype(jnp.int8)
        return drawn * signs.astype(drawn.dtype), Folded(jnp.abs(kernel).ravel()[0], signs, lower, upper)

    def weight(drawn, state, key):
        return (state.constant if folded else state.kernel) * ternarize(drawn, state.lower, state.upper)

    def mask(drawn, state):
        found = ternarize(drawn, state.lower, state.upper)
        return found * state.signs.astype(found.dtype) if folded else found

    def settled(drawn, state, reach):
        least, most = reachable(drawn, reach)
        return (least > state.lower) & (most < state.upper)

    return layerwise(init, weight, mask, settled=settled, elementwise=True)
