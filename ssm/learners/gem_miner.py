"""Gem-Miner: scores between 0 and 1 that are rounded, regularised, and frozen out step by step."""

import math
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ssm.errors import require
from ssm.learners.base import Learner, layerwise
from ssm.learners.selection import largest_of_all
from ssm.learners.straight_through import straight_through


class Flagged(NamedTuple):
    """A layer's frozen kernel, and 1 for each weight that may still be kept."""

    kernel: Float[Array, "..."]
    flag: Float[Array, "..."]


def gem_miner(
    *,
    density: Annotated[float, "Share of all weights that may be kept in the end, at most."] = 0.05,
    every: Annotated[int, "Steps between two times that weights are frozen out (published: 5 epochs)."] = 1955,
    steps: Annotated[int, "Training steps in all."] = 58_650,
    strength: Annotated[float, "Of the penalty strength * sum(score^2)."] = 1e-4,
) -> Learner:
    """Return the learner of weight = kernel * m, m = 1 where the score is above 0.5 and not frozen out.

    Scores start as U(0, 1), are clamped to [0, 1] before each step, and get the gradient of the mask.  Every so often
    the share 1 - density^(1 / times) of the active weights with the smallest |score| is frozen out, over all layers;
    those equal to the last as well.  Source: Sreenivasan et al. 2022 and its program (ksreenivasan/pruning_is_enough),
    whose published accuracies are those after the weights were fine-tuned, which is not done here.

    Raises UserError for a density outside (0, 1], steps below 1, or a negative or infinite strength.
    """
    require(strength, "strength", "at least 0 and finite", lambda value: 0 <= value < math.inf)
    require(density, "density", "in (0, 1]", lambda value: 0 < value <= 1)
    for name, value in (("every", every), ("steps", steps)):
        require(value, name, "at least 1", lambda value: value >= 1)
    rate = 1 - density ** (1 / max(1, (steps - 1) // every))

    def init(key, kernel):
        return jax.random.uniform(key, kernel.shape, kernel.dtype), Flagged(kernel, jnp.ones_like(kernel))

    def mask(scores, state):
        return (scores > 0.5).astype(scores.dtype) * state.flag

    def weight(scores, state, key):
        return state.kernel * state.flag * straight_through((scores > 0.5).astype(scores.dtype), scores)

    def update(key, step, now):
        return now._replace(params=jax.tree.map(lambda score: jnp.clip(score, 0, 1), now.params))

    def finish(key, step, before, after):
        due = ((step + 1) % every == 0) & (step + 1 < steps)
        return after._replace(
            state=jax.lax.cond(due, lambda: frozen_out(after.params, after.state, rate), lambda: after.state)
        )

    def penalty(params, state):
        clamped = (straight_through(jnp.clip(score, 0, 1), score) for score in params.values())
        return strength * sum(jnp.sum(score**2) for score in clamped)

    return layerwise(init, weight, mask, update=update, finish=finish, penalty=penalty)


def frozen_out(scores, state, rate):
    """Return the state after the share `rate` of the active weights with the smallest |score| is frozen out."""
    sizes = {path: jnp.where(one.flag > 0, jnp.abs(scores[path]), -1) for path, one in state.items()}
    active = sum(jnp.sum(size >= 0, dtype=jnp.int32) for size in sizes.values())
    flags = largest_of_all(sizes, active - jnp.ceil(rate * active).astype(jnp.int32), ties="none")
    return {path: one._replace(flag=flags[path]) for path, one in state.items()}
