"""SET, sparse evolutionary training: the smallest weights make room for random ones."""

from typing import Annotated

import jax
import jax.numpy as jnp

from ssm.errors import require
from ssm.learners.base import Learner, each, map_by_layer
from ssm.learners.regrowth import connections, masked, regrown
from ssm.learners.sparsity import (
    Distribution,
    check_counts,
    check_shares,
    output_layer,
    random_masks,
    scattered_masks,
    top,
)


def sparse_evolutionary(
    *,
    density: Annotated[float, "Share of the weights that is kept."] = 0.1,
    distribution: Annotated[Distribution, "How densities differ by layer."] = "erk",
    epsilon: Annotated[float, "SET's own measure of density, 20 as published; 0 takes the two above instead."] = 0.0,
    drop: Annotated[float, "Share of the positive and of the negative weights that is dropped."] = 0.3,
    every: Annotated[int, "Steps between two changes of connections: an epoch's."] = 500,
    dense_output: Annotated[bool, "The output layer keeps all of its weights, as published."] = False,
) -> Learner:
    """Return the learner that drops, layer by layer, the weights nearest to 0, and grows as many at random places.

    Of P positive weights int(drop P) + 1 are dropped, and of N negative ones all but int((1 - drop) N): those nearest
    to 0 of each sign by itself.  As many connections grow uniformly over all empty places, those just dropped included;
    they start at 0, and all momentum of the layers starts again.  With `epsilon` each weight is kept at the start with
    probability epsilon (n_in + n_out) / (n_in n_out), by itself.  The published program changes connections between
    an epoch's test and the next one's first step; here they change at the end of step `every`, 2 `every`, ... from 0,
    the first of an epoch, so that no test sees a net in which a third of the weights has just been replaced.

    Source: Mocanu et al. 2018, and the program dcmocanu/sparse-evolutionary-artificial-neural-networks (which RigL's
    program calls SET drops by |w| instead).  Raises UserError for an option out of range.
    """
    check_shares(density=density, drop=drop)
    check_counts(every=every)
    require(epsilon, "epsilon", "at least 0", lambda value: value >= 0)
    start = scattered_masks(epsilon, dense_output) if epsilon else random_masks(density, distribution, dense_output)

    def kept(weight):
        positive, negative = jnp.count_nonzero(weight > 0), jnp.count_nonzero(weight < 0)
        lost = jnp.minimum((drop * positive).astype(jnp.int32) + 1, positive)
        left = ((1 - drop) * negative).astype(jnp.int32)
        return top(weight, positive - lost, among=weight > 0) + top(-weight, left, among=weight < 0)

    def change(key, step, before, after):
        fixed = output_layer(after.params) if dense_output else None
        core = {p: after.state[p].mask if p == fixed else kept(w) for p, w in after.params.items()}

        def layer(path, key):
            return regrown(core[path], after.state[path].mask, jax.random.uniform(key, core[path].shape))

        stopped = map_by_layer(lambda leaf, weight: jnp.zeros_like(leaf), after.opt, after.params)
        return masked(masked(after, core)._replace(opt=stopped), each(core, key, layer))

    return connections(start, lambda step: (step > 0) & (step % every == 0), change)
