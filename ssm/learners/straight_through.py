"""Values whose gradient is that of others: straight-through estimation."""

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float


@jax.custom_jvp
def straight_through(hard: Float[Array, "..."], soft: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return `hard` as it is, with the derivative of `soft`; both of one shape and dtype.

    Source: Bengio, Leonard and Courville 2013.
    """
    return hard


straight_through.defjvps(None, lambda tangent, value, hard, soft: tangent)


def magnitude(scores: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return |scores| with the derivative sign(scores), which is 0 at 0, where that of `jnp.abs` is 1."""
    return scores * lax.stop_gradient(jnp.sign(scores))
