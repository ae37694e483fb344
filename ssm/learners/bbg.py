"""Balanced binarisation of weights (BBG), as far as it is known: experimental."""

from typing import Annotated

import jax.numpy as jnp

from ssm.learners.base import Learner, layerwise
from ssm.learners.straight_through import straight_through


def bbg(
    *,
    scaled: Annotated[bool, "Multiply the signs by the layer's mean |W - mean W|."] = True,
) -> Learner:
    """Return the learner of balanced binary weights: weight = alpha sign(W - mean W), W trained.  Experimental.

    Known, from the abstract of Shen et al., "Balanced Binary Neural Networks with Gated Residual" (2020): weights are
    binarised in a balanced way, activations are binary, and a gated residual makes up for what they lose.  Not known,
    as neither text nor program was to be had: whether the mean is that of a layer, as here, or of each output, the
    scale alpha (here mean |W - mean W| of the layer, or 1), the gradient (here straight through to W - mean W, so that
    W keeps its mean) and the gate, which is the net's own matter and not in this library.  Numbers obtained with it are
    no reproduction of theirs.  A weight exactly at the mean becomes +alpha.
    """

    def mask(latent, state):
        return jnp.where(latent < jnp.mean(latent), -1, 1).astype(latent.dtype)

    def weight(latent, state, key):
        centred = latent - jnp.mean(latent)
        alpha = jnp.mean(jnp.abs(centred)) if scaled else 1
        return straight_through(alpha * mask(latent, state), centred)

    return layerwise(lambda key, kernel: (kernel, ()), weight, mask)
