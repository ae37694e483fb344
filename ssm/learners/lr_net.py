"""LR-Net: the probabilities of ternary weights are trained, and the outputs of layers are drawn."""

import math
from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from ssm.errors import require
from ssm.initializers import fans
from ssm.learners import chances
from ssm.learners.base import Learner, layerwise
from ssm.learners.options import require_one_of


def lr_net(
    *,
    start: Annotated[Literal["trained", "flat"], "As the kernels say, or P(0) = 0.33, signs equal."] = "trained",
    decay: Annotated[float, "Factor of the penalty, the sum of the logits' squares."] = 1e-11,
    draws: Annotated[int, "Draws of the weights that a test averages; 0 tests the likeliest weights."] = 7,
    scaled: Annotated[bool, "Multiply weights by sqrt(1.5 / (d fan_in)), d the density at the start."] = False,
) -> Learner:
    """Return the learner of LR-Net: w is 0, 1 or -1 at random, and training draws outputs from N(x mean, x^2 variance).

    The params of a layer are the logits `zero` of P(0) and `plus` of P(1 | not 0) (`ssm.learners.chances`); training
    draws as `ssm.supermask.reparameterisation` says.  Masks are the likeliest values.  A trained start divides the
    kernels by their standard deviation: `pretrained(lr_net(), steps)`.

    Source: Shayer, Levi and Fetaya 2018, and their program (LRnets).  There the last layer is real-valued (`by_layer`),
    and the best of the 7 draws is reported, too.  Ours: `scaled`, for nets without batch norm.

    Raises UserError for another start, or a negative decay or number of draws.
    """
    require(decay, "decay", "at least 0 and finite", lambda value: 0 <= value < math.inf)
    require(draws, "draws", "at least 0 and finite", lambda value: 0 <= value < math.inf)
    require_one_of(start, "start", ("trained", "flat"))

    def init(key, kernel):
        logits = chances.flat(kernel) if start == "flat" else chances.of_trained(kernel / jnp.std(kernel))
        scale = jnp.sqrt(1.5 / (chances.density(logits) * fans(kernel.shape)[0])) if scaled else 1
        return logits, jnp.asarray(scale, kernel.dtype)

    def weight(logits, scale, key):
        return scale * (chances.mode(logits) if key is None else chances.mean(logits))

    def mask(logits, scale):
        return chances.mode(logits)

    drawn = layerwise(init, lambda logits, scale, key: scale * chances.draw(logits, key), mask).weights
    return layerwise(
        init,
        weight,
        mask,
        variances=lambda params, state: {path: state[path] ** 2 * chances.variance(params[path]) for path in params},
        draw=drawn if draws else None,
        draws=draws,
        penalty=lambda params, state: decay * sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(params)),
        elementwise=True,
    )
