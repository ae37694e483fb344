"""Weights that are 0, 1 or -1 at random: their probabilities, and the mean, variance, mode and draws of these.

Parameters are two logits of each weight: `zero` of P(0), and `plus` of P(1 | not 0).  Source: Shayer, Levi and Fetaya
2018, and their program.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.nn import sigmoid
from jax.scipy.special import logit
from jaxtyping import Float

Logits = Mapping[str, Float[Array, "..."]]


def flat(weight: Float[Array, "..."]) -> dict[str, Array]:
    """Return the logits of P(0) = 0.33 and equal chances of both signs, of the shape of some weights."""
    return {"zero": logit(jnp.full_like(weight, 0.33)), "plus": jnp.zeros_like(weight)}


def of_trained(weight: Float[Array, "..."]) -> dict[str, Array]:
    """Return logits whose P(0) = 0.95 - 0.9 |w|, and P(1 | not 0) = (1 + w / (1 - P(0))) / 2 within [0.05, 0.95].

    weight: of a trained layer, over their standard deviation; here clipped to [-1, 1].
    """
    weight = jnp.clip(weight, -1, 1)
    zero = 0.95 - 0.9 * jnp.abs(weight)
    plus = jnp.clip((1 + weight / (1 - zero)) / 2, 0.05, 0.95)
    return {"zero": logit(zero), "plus": logit(plus)}


def probabilities(logits: Logits) -> tuple[Array, Array]:
    """Return P(1) and P(-1)."""
    some = sigmoid(-logits["zero"])
    return some * sigmoid(logits["plus"]), some * sigmoid(-logits["plus"])


def density(logits: Logits) -> Float[Array, ""]:
    """Return the mean of 1 - P(0), the share of weights that are not 0."""
    return jnp.mean(sigmoid(-logits["zero"]))


def mean(logits: Logits) -> Float[Array, "..."]:
    """Return P(1) - P(-1)."""
    plus, minus = probabilities(logits)
    return plus - minus


def variance(logits: Logits) -> Float[Array, "..."]:
    """Return P(1) + P(-1) - mean^2."""
    plus, minus = probabilities(logits)
    return plus + minus - jnp.square(plus - minus)


def mode(logits: Logits) -> Float[Array, "..."]:
    """Return the likeliest of 0, 1 and -1; of equally likely ones the first in this order."""
    plus, minus = probabilities(logits)
    signs = jnp.where(minus > plus, -1, 1).astype(plus.dtype)
    return jnp.where(jnp.maximum(plus, minus) > sigmoid(logits["zero"]), signs, 0)


def draw(logits: Logits, key: Any) -> Float[Array, "..."]:
    """Return 0, 1 or -1 with their probabilities; the key is one of `jax.random`."""
    plus, minus = probabilities(logits)
    chance = jax.random.uniform(key, plus.shape, plus.dtype)
    return (chance < plus).astype(plus.dtype) - (chance >= 1 - minus)
