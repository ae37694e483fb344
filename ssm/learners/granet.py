"""GraNet: gradual pruning of the whole net, with regrowth of the weights with the largest gradients."""

from typing import Annotated

import jax.numpy as jnp
from jax import lax

from ssm.errors import require
from ssm.learners.base import Learner, each
from ssm.learners.regrowth import connections, masked, pruned, regrown, survivors
from ssm.learners.sparsity import Distribution, check_counts, check_shares, cubic_counts, random_masks

LAST_SHARE = 0.005
"""Share of a layer's weights that is dropped at the end of training."""


def granet(
    *,
    density: Annotated[float, "Share of the weights that is kept in the end."] = 0.05,
    start_density: Annotated[float, "Share of the weights that is kept at the start."] = 0.5,
    distribution: Annotated[Distribution, "How densities differ by layer at the start."] = "erk",
    drop: Annotated[float, "Share of a layer's kept weights that is dropped and grown, at the start."] = 0.5,
    every: Annotated[int, "Steps between two changes of connections."] = 1000,
    until: Annotated[float, "Share of the training after which the net is not pruned further; 0: it never is."] = 0.5,
    steps: Annotated[int, "Training steps in all."] = 56_320,
) -> Learner:
    """Return the learner that prunes the whole net gradually, and drops and grows weights layer by layer.

    After each `every`-th step, the t-th time: with T = int(until steps / every) and t < T, weights stay whose |w| is
    above the int(N d)-th largest of all N, d = density + (start_density - density) (1 - t / T)^3: strictly above, and
    the last prune is at T - 1, so that the net ends one weight sparser, and (start_density - density) / T^3 denser,
    than asked.  Then of each layer's n weights the ceil(r n) smallest are dropped, ties too, r going from `drop` to
    0.005 along a cosine over all steps, and as many grow where |dL/dw| of the step's batch is largest among the empty
    places.  A weight that is dropped here and grows at once keeps its value and momentum, any other starts at 0.

    Source: Liu et al. 2021, and the program VITA-Group/GraNet (whose random start has the densities in expectation, not
    exactly).  Raises UserError for an option out of range.
    """
    check_shares(density=density, start_density=start_density, drop=drop)
    check_counts(every=every, steps=steps)
    require(until, "until", "from 0 to 1", lambda value: 0 <= value <= 1)
    prunes = int(until * steps / every)

    def change(key, step, before, after):
        time, progress = (step + 1) // every, jnp.minimum((step + 1) / steps, 1)
        if prunes:
            counts = cubic_counts(sum(leaf.size for leaf in after.params.values()), start_density, density, prunes)
            number = jnp.asarray(counts)[jnp.minimum(time, prunes - 1)]
            after = lax.cond(time < prunes, lambda: pruned(after, number), lambda: after)
        share = LAST_SHARE + (drop - LAST_SHARE) / 2 * (1 + jnp.cos(jnp.pi * progress))

        def layer(path, key):
            mask = after.state[path].mask
            return regrown(survivors(after.params[path], mask, share), mask, jnp.abs(before.grads[path]))

        return masked(after, each(after.params, key, layer))

    return connections(random_masks(start_density, distribution), lambda step: (step + 1) % every == 0, change)
