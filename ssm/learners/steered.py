"""The signed Supermask under one threshold that is steered until a share of the weights is left."""

from typing import Annotated, Any

import jax.numpy as jnp
from jax import lax

from ssm.errors import require
from ssm.learners.base import SCORES, THRESHOLD, Learner
from ssm.learners.selection import kept_of, least_of_all
from ssm.learners.signed import signed

NEARBY = 1.02
"""Factor on the threshold at which the remaining weights are counted a second time."""
LEAST_SLOPE = 0.5
"""Bound of the slope where no score lies near the threshold."""


def steered(
    *,
    density: Annotated[float, "Share of all weights that is kept in the end."] = 0.1,
    start: Annotated[float, "Share at the start, from which it falls to that: below 1 for larger constants."] = 1.0,
    steps: Annotated[int, "Steps until the share is reached."] = 23_450,
    counted: Annotated[int, "Step from which on the share is counted out, once rates are near 0; 0: never."] = 0,
    gain: Annotated[float, "How fast the threshold follows: the part of the error that a step takes away."] = 0.1,
    scores: Any = SCORES,
    threshold: Any = THRESHOLD,
) -> Learner:
    """Return the signed learner whose thresholds follow the remaining weights, by one factor for all layers.

    After each step log(threshold) moves by gain * (log(density now) - log(density wanted)) / slope, where the wanted
    density is on a line, in logarithms, from `start` to `density` at step `steps`, and slope = -d log(density) /
    d log(threshold), counted between the threshold and one 2 % above it.  Without the slope, which late in training
    reaches some tens because scores gather at the threshold, the density swings about the wanted one.  Where rates end
    at 0 they gather so closely that it swings nevertheless: from step `counted` on, when scores hardly move, the
    thresholds are where `density` is left but for ties and rounding.  They start as `threshold` says of the scores,
    which must not be at 0.

    Raises UserError for a share outside (0, 1], numbers that are not above 0, or a `counted` before `steps`.
    """
    for name, share in (("density", density), ("start", start)):
        require(share, name, "in (0, 1]", lambda share: 0 < share <= 1)
    for name, value in (("steps", steps), ("gain", gain)):
        require(value, name, "above 0", lambda value: value > 0)
    require(counted, "counted", f"0, or a step from steps={steps} on", lambda value: value == 0 or value >= steps)
    base = signed(scores=scores, threshold=threshold)

    def counting(step, after):
        def ratio(score, one):
            return jnp.where(score > 0, score / one.upper, score / one.lower)

        ratios = {path: ratio(score, after.state[path]) for path, score in after.params.items()}
        least = least_of_all(ratios, kept_of(sum(one.size for one in ratios.values()), density))
        return jnp.where(least > 0, least, 1).astype(jnp.float32)  # more scores of 0 than may be hidden: as it is

    def following(step, after):
        def is_kept(score, one, factor):
            return (score >= factor * one.upper) | (score <= factor * one.lower)

        def logarithm_of_kept(factor):
            kept = sum(jnp.sum(is_kept(score, after.state[path], factor)) for path, score in after.params.items())
            return jnp.log(jnp.maximum(kept, 1))

        kept, total = logarithm_of_kept(1.0), sum(score.size for score in after.params.values())
        slope = (kept - logarithm_of_kept(NEARBY)) / jnp.log(NEARBY)
        done = jnp.minimum((step + 1) / steps, 1.0)
        error = kept - jnp.log(total) - (1 - done) * jnp.log(start) - done * jnp.log(density)
        return jnp.exp(gain * error / jnp.maximum(slope, LEAST_SLOPE)).astype(jnp.float32)

    def finish(key, step, before, after):
        factor = lax.cond(step >= counted, counting, following, step, after) if counted else following(step, after)

        def moved(one):
            return one._replace(lower=one.lower * factor, upper=one.upper * factor)

        return after._replace(state={path: moved(one) for path, one in after.state.items()})

    return base._replace(finish=finish, settled=None)
