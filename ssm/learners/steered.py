"""The signed Supermask under one threshold that is steered until a share of the weights is left."""

from typing import Annotated, Any

import jax.numpy as jnp

from ssm.errors import require
from ssm.learners.base import SCORES, THRESHOLD, Learner
from ssm.learners.signed import signed


def steered(
    *,
    density: Annotated[float, "Share of all weights that is kept in the end."] = 0.1,
    steps: Annotated[int, "Steps until the share is reached."] = 23_450,
    gain: Annotated[float, "How fast the threshold follows: its relative change for an error of a factor e."] = 0.05,
    scores: Any = SCORES,
    threshold: Any = THRESHOLD,
) -> Learner:
    """Return the signed learner whose threshold follows the remaining weights, the same in all layers.

    After each step log(threshold) moves by gain * (log(density now) - log(density wanted)), the latter on a line from
    that at the start to `density` at step `steps`.  It starts as `threshold` says of the scores.

    Raises UserError for a density outside (0, 1], or numbers that are not above 0.
    """
    require(density, "density", "in (0, 1]", lambda value: 0 < value <= 1)
    for name, value in (("steps", steps), ("gain", gain)):
        require(value, name, "above 0", lambda value: value > 0)
    base = signed(scores=scores, threshold=threshold)

    def finish(key, step, before, after):
        kept = sum(jnp.sum(jnp.abs(after.params[path]) >= one.upper) for path, one in after.state.items())
        total = sum(score.size for score in after.params.values())
        done = jnp.minimum((step + 1) / steps, 1.0)
        error = jnp.log(jnp.maximum(kept, 1) / total) - done * jnp.log(density)
        factor = jnp.exp(gain * error)

        def moved(one):
            return one._replace(lower=one.lower * factor, upper=one.upper * factor)

        return after._replace(state={path: moved(one) for path, one in after.state.items()})

    return base._replace(finish=finish, settled=None)
