"""The ternary and the binary mask as pure functions of scores, with a straight-through gradient."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

ROUNDING = 1e-4
"""Share of a score that the rounding of all its later moves comes to at most: 6e-8 each, of a few hundred."""


@jax.custom_jvp
def ternarize(
    scores: Float[Array, "..."], lower: Float[ArrayLike, "..."], upper: Float[ArrayLike, "..."]
) -> Float[Array, "..."]:
    """Return the signed Supermask of scores: -1 at or below `lower`, +1 at or above `upper`, 0 between.

    `scores` has any shape and float dtype, and the mask has the same; `lower` <= `upper` broadcast
    against it and are ordinary traced arguments.  A NaN score gives a NaN mask, never a silent -1, 0
    or 1: the loss of that net turns NaN too, where it is noticed.  Where both comparisons hold
    (at `lower` == `upper`), the mask is +1.  Derivative, forward and backward: the identity to the scores (straight
    through), zero to the thresholds.  Source: equation 1 of the paper.
    """
    # `scores != scores` keeps a NaN; everything else between the thresholds is 0.
    hidden = jnp.where(scores != scores, scores, jnp.zeros_like(scores))
    one = jnp.ones_like(scores)
    return jnp.where(scores >= upper, one, jnp.where(scores <= lower, -one, hidden))  # eq. 1


@jax.custom_jvp
def binarize(scores: Float[Array, "..."], upper: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Return the binary Supermask of scores: 1 above `upper`, else 0.

    Shapes, dtypes, NaN and derivative are as in `ternarize`; the comparison is strict, as in the authors' program
    (figure bin_mask_comparison of the paper).
    """
    hidden = jnp.where(scores != scores, scores, jnp.zeros_like(scores))
    return jnp.where(scores > upper, jnp.ones_like(scores), hidden)


def reachable(
    scores: Float[Array, "..."], reach: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Return the lowest and the highest value that scores can take while they decay towards 0 and move by `reach`.

    NaN where a score is.  The sums of many small moves are rounded: both bounds are a little wider.
    """
    slack = ROUNDING * jnp.abs(scores) + reach
    return jnp.minimum(scores, 0) - slack, jnp.maximum(scores, 0) + slack


# A custom_jvp has both modes, the backward one by transposition: a custom_vjp has no jvp, and so no `jax.hessian`.
def _straight_through(tangent, mask, *primals):
    return tangent


ternarize.defjvps(_straight_through, None, None)
binarize.defjvps(_straight_through, None)
