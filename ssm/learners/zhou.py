"""Zhou's Supermask: each weight is kept with a probability that is learned."""

import math
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, UInt32

from ssm.errors import require
from ssm.learners.base import Learner, layerwise
from ssm.learners.straight_through import straight_through


class Stochastic(NamedTuple):
    """A layer's frozen kernel, and the key of the draw that stands for it where one mask is wanted."""

    kernel: Float[Array, "..."]
    key: UInt32[Array, " words"]


def zhou(
    *,
    rescale: Annotated[bool, "Multiply each layer's weights by size / number kept."] = True,
    start: Annotated[float, "Scores at the start: the logit of the probability to keep a weight."] = 0.0,
    draws: Annotated[int, "Masks that a test draws and averages over."] = 10,
) -> Learner:
    """Return the learner of weight = kernel * m, m ~ Bernoulli(sigmoid(score)), in training and in tests.

    Gradients go through the mask to sigmoid(score), and under `rescale`, weight = kernel * m * size / sum(m), through
    the multiplier, too.  Where one mask is wanted, it is always the same draw of uniform numbers, at or above which the
    probability must be.  Source: Zhou et al. 2019 and its program (uber-research/deconstructing-lottery-tickets).

    Raises UserError for a start that is not finite, or fewer than one draw.
    """
    require(start, "start", "finite", math.isfinite)
    require(draws, "draws", "at least 1 and finite", lambda value: 1 <= value < math.inf)

    def init(key, kernel):
        return jnp.full_like(kernel, start), Stochastic(kernel, jax.random.key_data(key))

    def drawn(scores, key):
        return jax.random.bernoulli(key, jax.nn.sigmoid(scores)).astype(scores.dtype)

    def mask(scores, state):
        return drawn(scores, jax.random.wrap_key_data(state.key))

    def weight(scores, state, key):
        kept = mask(scores, state) if key is None else drawn(scores, key)
        return masked(state.kernel, kept, scores, rescale=rescale)

    learner = layerwise(init, weight, mask)
    return learner._replace(draw=learner.weights, draws=draws)


def masked(kernel: Any, kept: Any, scores: Any, *, rescale: bool) -> Any:
    """Return a kernel under a drawn mask, all of its shape, with the gradient of the probabilities."""
    kept = straight_through(kept, jax.nn.sigmoid(scores))
    return kernel * kept * (kept.size / jnp.sum(kept) if rescale else 1)
