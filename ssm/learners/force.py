"""FORCE: progressive skeletonization, a pruning at initialisation after which the kept weights are trained."""

import math
from typing import Annotated

import jax.numpy as jnp

from ssm.learners.base import Learner
from ssm.learners.regrowth import Connections, connections
from ssm.learners.selection import largest_of_all
from ssm.learners.sparsity import check_counts, check_shares


def force(
    *,
    density: Annotated[float, "Share of the weights that is kept."] = 0.1,
    pruning_steps: Annotated[int, "First steps of training, T, which only choose weights."] = 60,
    recover: Annotated[bool, "Hidden weights may come back; if not, the method is iterative SNIP."] = True,
) -> Learner:
    """Return the learner that keeps the weights of the largest |w dL/dw| in the whole net, and then trains them.

    In step t = 1..T the share k_t = exp((t / T) ln density) is kept: mask = |w g| >= the int(N k_t)-th largest, at
    least one of the N weights, ties kept.  w is the initial weight, g the gradient of the masked net, of hidden weights
    too.  These steps change no masked layer's weight nor momentum (biases and averages of batches go on as always);
    from step T + 1 on the kept weights are trained, and the hidden ones are 0.

    Source: de Jorge et al. 2021, and the program naver/force, which takes minus the mean true-class logit as the loss.
    Raises UserError for a density out of range or T below 1.
    """
    check_shares(density=density)
    check_counts(pruning_steps=pruning_steps)

    def start(key, kernels):
        return {path: jnp.ones_like(kernel) for path, kernel in kernels.items()}

    def change(key, step, before, after):
        saliency = {path: jnp.abs(leaf * before.grads[path]) for path, leaf in before.params.items()}
        if not recover:
            saliency = {path: leaf * before.state[path].mask for path, leaf in saliency.items()}
        total = sum(leaf.size for leaf in saliency.values())
        kept = jnp.asarray(kept_counts(total, density, pruning_steps))[step]
        masks = largest_of_all(saliency, kept, ties="all")
        return before._replace(state={path: Connections(mask) for path, mask in masks.items()})

    return connections(start, lambda step: step < pruning_steps, change)


def kept_counts(total: int, density: float, pruning_steps: int) -> list[int]:
    """Return how many of all weights each of the pruning steps keeps."""
    shares = (math.exp((step + 1) / pruning_steps * math.log(density)) for step in range(pruning_steps))
    return [max(1, int(total * share)) for share in shares]
