"""Ternary weight networks: latent weights are trained, and ternarised by a threshold and a scale of each layer."""

import math
from statistics import NormalDist
from typing import Annotated

import jax.numpy as jnp

from ssm.errors import require
from ssm.learners.base import Learner, layerwise
from ssm.learners.straight_through import straight_through


def twn(
    *,
    factor: Annotated[float, "Threshold of a layer, in units of its mean |weight|."] = 0.7,
    density: Annotated[float, "Share to keep of normal weights, which sets the factor; 0 leaves it as it is."] = 0.0,
) -> Learner:
    """Return the learner of ternary weight networks: weight = alpha * t, t = sign(W) where |W| > delta, else 0.

    delta = factor * mean |W| and alpha = mean of the |W| above it, both of a layer, anew in each step.  The params are
    the latent kernels W, which get the gradient at the effective weight as it is, not times alpha.  A density d sets
    the factor for which normal weights have it: the quantile of 1 - d / 2 over sqrt(2 / pi).

    Source: Li, Zhang and Liu 2016, and their program (caffe-twns); no layer is exempt there.  A widespread port has
    0.75 and a threshold for each output.

    Raises UserError for a factor that is negative or not finite, or a density outside [0, 1].
    """
    require(factor, "factor", "at least 0 and finite", lambda value: 0 <= value < math.inf)
    require(density, "density", "in [0, 1]", lambda value: 0 <= value <= 1)
    if density:
        factor = NormalDist().inv_cdf(1 - density / 2) / math.sqrt(2 / math.pi)

    def mask(latent, state):
        return jnp.sign(latent) * (jnp.abs(latent) > factor * jnp.mean(jnp.abs(latent)))

    def weight(latent, state, key):
        ternary = mask(latent, state)
        alpha = jnp.sum(latent * ternary) / jnp.maximum(jnp.sum(jnp.abs(ternary)), 1)
        return straight_through(alpha * ternary, latent)

    return layerwise(lambda key, kernel: (kernel, ()), weight, mask)
