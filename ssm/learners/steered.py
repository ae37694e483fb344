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
    steps: Annotated[int, "Steps until the share is reached."] = 23_450,
    counted: Annotated[int, "Step from which on exactly that share is left, as the rates are near 0 by then."] = 46_431,
    gain: Annotated[float, "How fast the threshold follows: the part of the error that a step takes away."] = 0.1,
    scores: Any = SCORES,
    threshold: Any = THRESHOLD,
) -> Learner:
    """Return the signed learner whose threshold follows the remaining weights, the same in all layers.

    After each step log(threshold) moves by gain * (log(density now) - log(density wanted)) / slope, where the wanted
    density is on a line, in logarithms, from 1 at the start to `density` at step `steps`, and slope = -d log(density) /
    d log(threshold), counted between the threshold and one 2 % above it.  Without the slope, which late in training
    reaches some tens because scores gather at the threshold, the density swings about the wanted one.  Where rates end
    at 0 they gather so closely that it swings nevertheless: from step `counted` on, when scores hardly move, the
    threshold is where exactly `density` is left.  It starts as `threshold` says of the scores.

    Raises UserError for a density outside (0, 1], or numbers that are not above 0.
    """
    require(density, "density", "in (0, 1]", lambda value: 0 < value <= 1)
    for name, value in (("steps", steps), ("counted", counted), ("gain", gain)):
        require(value, name, "above 0", lambda value: value > 0)
    base = signed(scores=scores, threshold=threshold)

    def counting(after):
        ratios = {path: jnp.abs(after.params[path]) / one.upper for path, one in after.state.items()}
        return least_of_all(ratios, kept_of(sum(ratio.size for ratio in ratios.values()), density))

    def following(step, after):
        def logarithm_of_kept(factor):
            kept = sum(jnp.sum(jnp.abs(after.params[path]) >= factor * one.upper) for path, one in after.state.items())
            return jnp.log(jnp.maximum(kept, 1))

        kept, total = logarithm_of_kept(1.0), sum(score.size for score in after.params.values())
        slope = (kept - logarithm_of_kept(NEARBY)) / jnp.log(NEARBY)
        done = jnp.minimum((step + 1) / steps, 1.0)
        error = kept - jnp.log(total) - done * jnp.log(density)
        return jnp.exp(gain * error / jnp.maximum(slope, LEAST_SLOPE))

    def finish(key, step, before, after):
        factor = lax.cond(step >= counted, counting, lambda after: following(step, after), after)

        def moved(one):
            return one._replace(lower=one.lower * factor, upper=one.upper * factor)

        return after._replace(state={path: moved(one) for path, one in after.state.items()})

    return base._replace(finish=finish, settled=None)
