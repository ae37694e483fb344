"""Sparsity-control ternary weight networks: smooth weights in (-1, 1) that a penalty drives to -1, 0 and 1."""

import math
from typing import Annotated

import jax
import jax.numpy as jnp

from ssm.errors import require
from ssm.initializers import fans, paper_formula
from ssm.learners.base import SCORES, Learner, layerwise


def sca(
    *,
    alpha: Annotated[float, "Controller of the density, in (0, 2): |tanh| below sqrt(alpha / 2) goes to 0."] = 0.5,
    strength: Annotated[float, "Factor of the penalty."] = 1e-5,
    ramp: Annotated[int, "Steps over which the penalty grows from 0 to its strength; 0 for none."] = 0,
    density: Annotated[float, "Density d of the scale sqrt(1.5 / (d fan_in)) of a layer; 0 for no scale."] = 0.0,
    start: Annotated[float, "theta starts uniformly between -start and start; 0 for Glorot's numbers."] = 0.0,
) -> Learner:
    """Return the learner whose weight is c * tanh(theta), with the penalty strength * sum (alpha - t^2) t^2, t = tanh.

    The penalty is largest at t^2 = alpha / 2, so that alpha controls how many weights go to 0.  Training never rounds
    and needs no straight-through gradient; a test does, c * round(tanh(theta)), and its masks are those.  A tie, a half
    exactly, goes to 0.  theta starts as said, whatever the kernels are: Glorot's numbers are all rounded to 0 at first,
    and a seed without a weight left is excluded, as everywhere.  c is 1 without a density.

    Source: Deng and Zhang, "Sparsity-control ternary weight networks", 2022; the form as in its abstract and in a third
    party's program.  Their strength and its schedule are not known: ramp, scale, start and defaults are ours.

    Raises UserError for an alpha outside [0, 2], a negative strength or ramp, or a density outside [0, 1].
    """
    require(alpha, "alpha", "in [0, 2]", lambda value: 0 <= value <= 2)
    require(strength, "strength", "at least 0 and finite", lambda value: 0 <= value < math.inf)
    require(ramp, "ramp", "at least 0 and finite", lambda value: 0 <= value < math.inf)
    require(density, "density", "in [0, 1]", lambda value: 0 <= value <= 1)
    require(start, "start", "at least 0 and finite", lambda value: 0 <= value < math.inf)

    def init(key, kernel):
        scale = paper_formula(1 - density)(*fans(kernel.shape)) if density else 1
        state = {"strength": 0 if ramp else strength, "scale": scale}
        spread = jax.random.uniform(key, kernel.shape, kernel.dtype, -1, 1)
        drawn = start * spread if start else SCORES(key, kernel.shape, kernel.dtype)
        return drawn, {name: jnp.asarray(value, kernel.dtype) for name, value in state.items()}

    def mask(theta, state):
        return jnp.round(jnp.tanh(theta))

    def weight(theta, state, key):
        return state["scale"] * (mask(theta, state) if key is None else jnp.tanh(theta))

    def update(key, step, now):
        grown = strength * jnp.minimum((step + 1) / max(ramp, 1), 1)  # of the next step
        state = {path: own | {"strength": grown.astype(own["scale"].dtype)} for path, own in now.state.items()}
        return now._replace(state=state)

    def penalty(params, state):
        squares = {path: jnp.square(jnp.tanh(theta)) for path, theta in params.items()}
        return sum(state[path]["strength"] * jnp.sum((alpha - square) * square) for path, square in squares.items())

    return layerwise(init, weight, mask, update=update if ramp else None, penalty=penalty, elementwise=True)
