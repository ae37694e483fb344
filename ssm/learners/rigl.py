"""RigL: the smallest weights make room for those with the largest gradients."""

from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from ssm.learners.base import Learner, each
from ssm.learners.options import require_one_of
from ssm.learners.regrowth import connections, masked, regrown
from ssm.learners.sparsity import Distribution, check_counts, check_shares, random_masks, top

NOISE = 1e-5
"""Standard deviation of what is added to |w| where the smallest are dropped: it breaks ties."""


def rigl(
    *,
    density: Annotated[float, "Share of the weights that is kept."] = 0.1,
    distribution: Annotated[Distribution, "How densities differ by layer."] = "erk",
    drop: Annotated[float, "Share of a layer's kept weights that is dropped, at the start."] = 0.3,
    schedule: Annotated[Literal["cosine", "constant"], "How this share falls."] = "cosine",
    every: Annotated[int, "Steps between two changes of connections."] = 100,
    until: Annotated[float, "Share of the training after which connections stay."] = 0.75,
    steps: Annotated[int, "Training steps in all."] = 97_656,
) -> Learner:
    """Return the learner that drops, layer by layer, the smallest weights, and grows those of the largest gradients.

    In each step 0, `every`, 2 `every`, ... before E = int(until steps) the share drop / 2 (1 + cos(pi step / E)) of a
    layer's kept weights is dropped, or always the share drop: int(kept share) of the smallest |w|, in float32.  As many
    grow where |dL/dw| is largest among all that are not kept, those just dropped included: one of these that comes back
    has its weight and momentum, a truly new one starts at 0 without.  No weight is trained in such a step.  The
    published program has an extra batch for it, which its count of steps leaves out; here it is one of the steps.

    Source: Evci et al. 2020, and the program google-research/rigl, which has a constant share on CIFAR-10, a cosine on
    MNIST, and a dense first layer (`by_layer`).  Raises UserError for an option out of range.
    """
    check_shares(density=density, drop=drop, until=until)
    check_counts(every=every, steps=steps)
    require_one_of(schedule, "schedule", ("cosine", "constant"))
    end = max(1, int(until * steps))

    def change(key, step, before, after):
        share = jnp.float32(drop) if schedule == "constant" else drop / 2 * (1 + jnp.cos(jnp.pi * step / end))

        def layer(path, key):
            mask, weight = before.state[path].mask, before.params[path]
            active = jnp.count_nonzero(mask)
            size = jnp.abs(weight) + NOISE * jax.random.normal(key, weight.shape, weight.dtype)
            kept = top(size, active - (active * share).astype(jnp.int32), among=mask)
            return regrown(kept, mask, jnp.abs(before.grads[path]))

        return masked(before, each(before.params, key, layer))

    return connections(random_masks(density, distribution), lambda step: (step % every == 0) & (step < end), change)
