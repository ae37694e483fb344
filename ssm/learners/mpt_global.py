"""Multi-prize tickets with one threshold for the whole net, and a share that falls during the first epochs."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from ssm.errors import require
from ssm.learners.base import Learner
from ssm.learners.chosen import drawn
from ssm.learners.edge_popup import SCORES
from ssm.learners.mpt import binarized
from ssm.learners.selection import largest_of_all


def mpt_global(
    *,
    density: Annotated[float, "Share of all weights that is kept in the end."] = 0.5,
    ramp: Annotated[int, "Epochs in which the share falls from 0.5."] = 10,
    epoch: Annotated[int, "Steps of an epoch."] = 390,
) -> Learner:
    """Return MPT's learner with m = 1 where |score| is above the int((1 - k) N)-th smallest of the net's N scores.

    The share k falls as density + (0.5 - density) (1 - e / ramp)^3 in epoch e, if density is below 0.5; scores at the
    threshold are dropped.  alpha is over the number kept.  Source: the global form of the program of Diffenderfer and
    Kailkhura, which belongs to a paper of 2022, not to the numbers of MPT's.

    Raises UserError for a density outside (0, 1], or steps or epochs below 1.
    """
    require(density, "density", "in (0, 1]", lambda value: 0 < value <= 1)
    require(ramp, "ramp", "at least 1", lambda value: value >= 1)
    require(epoch, "epoch", "at least 1", lambda value: value >= 1)

    def init(key, kernels):
        state = {path: Timed(kernel, jnp.zeros((), jnp.int32)) for path, kernel in kernels.items()}
        return drawn(SCORES, key, kernels), state

    def masks(scores, state):
        sizes = {path: jnp.abs(score) for path, score in scores.items()}
        total = sum(size.size for size in sizes.values())
        hidden = jnp.asarray([int((1 - share) * total) for share in kept_shares(density, ramp)])
        now = next(iter(state.values())).step // epoch
        return largest_of_all(sizes, total - hidden[jnp.minimum(now, ramp)], ties="none")

    def weights(scores, state, key):
        found = masks(scores, state)
        return {path: binarized(state[path].kernel, mask, scores[path], mask.sum()) for path, mask in found.items()}

    def finish(key, step, before, after):
        return after._replace(state={path: one._replace(step=step + 1) for path, one in after.state.items()})

    return Learner(init, weights, masks, finish=finish)


class Timed(NamedTuple):
    """A layer's frozen kernel, and how many steps were made."""

    kernel: Float[Array, "..."]
    step: Int[Array, ""]


def kept_shares(density: float, ramp: int) -> list[float]:
    """Return the share that is kept in each epoch from 0 to `ramp`, from which on it is `density`."""
    start = max(0.5, density)
    return [density + (start - density) * (1 - epoch / ramp) ** 3 for epoch in range(ramp + 1)]
