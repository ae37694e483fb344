"""Trained ternary quantisation: latent weights, and two trained values of each layer that they are replaced by."""

from typing import Annotated, Literal

import jax.numpy as jnp

from ssm.errors import require
from ssm.learners.base import Learner, layerwise
from ssm.learners.options import require_one_of
from ssm.learners.selection import largest
from ssm.learners.straight_through import straight_through


def ttq(
    *,
    threshold: Annotated[float, "Threshold of a layer, in units of its largest |weight|."] = 0.05,
    density: Annotated[float, "Share of each layer to keep, in place of the threshold; 0 for none."] = 0.0,
    start: Annotated[Literal["one", "mean"], "The two values at first: 1, or the mean |weight| of those kept."] = "one",
) -> Learner:
    """Return the learner of trained ternary quantisation: Wp where W > delta, -Wn where W < -delta, 0 between.

    delta = threshold * max |W| of the layer.  The params of a layer are `latent`, its W, and `plus` and `minus`, Wp and
    Wn.  With g the gradient at the effective weight, dWp is the sum of g above, dWn minus the sum of g below, and dW is
    g times Wp above, Wn below and 1 between.  A weight that is exactly at +-delta keeps its sign, with the size 1.

    Source: Zhu, Han, Mao and Dally 2017, and their program (ternarynet), which begins with a trained net
    (`pretrained`), decays Wp and Wn, too, and leaves the first layer as it is on CIFAR-10 (`by_layer`).  A widespread
    port has the other sign of dWn.  Ours: with a density d the round(d n) largest |W| are kept, at least one.

    Raises UserError for a threshold outside [0, 1), a density outside [0, 1], or another start.
    """
    require(threshold, "threshold", "in [0, 1)", lambda value: 0 <= value < 1)
    require(density, "density", "in [0, 1]", lambda value: 0 <= value <= 1)
    require_one_of(start, "start", ("one", "mean"))

    def ternary(latent):
        """Return the signs of those kept, and which of them lie exactly at the threshold."""
        size = jnp.abs(latent)
        if density:
            return jnp.sign(latent) * largest(size, max(1, round(density * size.size))), False
        delta = threshold * jnp.max(size)
        return jnp.sign(latent) * (size >= delta), size == delta

    def init(key, kernel):
        signs, _ = ternary(kernel)
        mean = jnp.sum(kernel * signs) / jnp.maximum(jnp.sum(jnp.abs(signs)), 1)
        value = jnp.ones_like(mean) if start == "one" else mean
        return {"latent": kernel, "plus": value, "minus": value}, ()

    def weight(params, state, key):
        signs, at_threshold = ternary(params["latent"])
        size = jnp.where(signs > 0, params["plus"], jnp.where(signs < 0, params["minus"], 1))
        return jnp.where(at_threshold, 1, size) * straight_through(signs, params["latent"])

    return layerwise(init, weight, lambda params, state: ternary(params["latent"])[0])
