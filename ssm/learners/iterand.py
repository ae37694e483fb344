"""IteRand: edge-popup whose hidden weights are drawn anew from time to time."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp

from ssm.errors import require
from ssm.initializers import he, signed_constant, uniform
from ssm.learners.base import Learner, each
from ssm.learners.chosen import chosen
from ssm.learners.selection import largest_of_each
from ssm.learners.straight_through import straight_through

WEIGHTS = signed_constant(he())
SCORES = uniform(he())  # U(-b, b), b = sqrt(6 / fan_in)


def iterand(
    *,
    density: Annotated[float, "Share of each layer's weights that is kept."] = 0.5,
    every: Annotated[int, "Steps between two draws."] = 300,
    rate: Annotated[float, "Probability with which a hidden weight is drawn anew."] = 0.1,
    redraw: Any = WEIGHTS,
) -> Learner:
    """Return the learner of weight = kernel * m, m = 1 for the largest scores of each layer.

    The threshold is the (1 + round((1 - density) (n - 1)))-th smallest score, at which all are kept; gradients go
    straight to the score.  Before steps `every`, 2 `every`, ... (counted from 1): W <- W m + (1 - m) [(1 - b) W + b W']
    with b ~ Bernoulli(rate), W' from the initialiser `redraw`.  Source: Chijiwa et al. 2021 and its program.

    Raises UserError for a density outside (0, 1], a rate outside [0, 1], or `every` below 1.
    """
    require(density, "density", "in (0, 1]", lambda value: 0 < value <= 1)
    require(rate, "rate", "in [0, 1]", lambda value: 0 <= value <= 1)
    require(every, "every", "at least 1", lambda value: value >= 1)

    def choose(scores, kernels):
        kept = {path: kept_of(score.size, density) for path, score in scores.items()}
        return largest_of_each(scores, kept, ties="all")

    def finish(key, step, before, after):
        def redrawn():
            masks = choose(after.params, after.state)
            return each(masks, key, lambda path, own: _mixed(own, after.state[path], masks[path], rate, redraw))

        due = (step + 2) % every == 0  # the next step, counted from 1
        return after._replace(state=jax.lax.cond(due, redrawn, lambda: dict(after.state)))

    def weight(kernel, mask, score):
        return kernel * straight_through(mask, score)

    return chosen(SCORES, choose, weight, finish=finish)


def _mixed(key, kernel, mask, rate, redraw):
    drawn = jax.random.bernoulli(jax.random.fold_in(key, 0), rate, kernel.shape)
    return rerandomized(kernel, mask, drawn, redraw(jax.random.fold_in(key, 1), kernel.shape, kernel.dtype))


def kept_of(size, density):
    """Return how many of `size` weights IteRand's program keeps, but for ties."""
    percent = round(100 * (1 - density), 10)  # as one would write it: 1 - 0.9 is a little less than 0.1
    return size - round(0.01 * percent * (size - 1))


def rerandomized(kernel, mask, drawn, fresh):
    """Return a kernel whose hidden weights are `fresh` where they are `drawn`; all of its shape."""
    return jnp.where((mask == 0) & (drawn != 0), fresh, kernel)
