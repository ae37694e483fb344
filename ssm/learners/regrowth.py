"""What methods share that train weights and choose connections: steps of the kept weights, and drop and grow."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int, Key

from ssm.learners.base import Layers, Learner, Step, map_by_layer
from ssm.learners.selection import largest, largest_of_all
from ssm.learners.sparsity import top
from ssm.learners.straight_through import straight_through


class Connections(NamedTuple):
    """A layer's mask, 1 where a weight is kept; its params are the weights themselves."""

    mask: Float[Array, "..."]


def connections(
    start: Callable[[Key[Array, ""], Mapping[str, Array]], Layers],
    due: Callable[[Int[Array, ""]], Bool[Array, ""]],
    change: Callable[[Key[Array, ""], Int[Array, ""], Step, Step], Step],
) -> Learner:
    """Return the learner that trains kept weights, and in some steps chooses others; hidden weights are 0.

    start: (key, kernels) -> masks.  due: step -> whether connections change in it.  change: `Learner.finish` for such
    steps, whose `after` has masked weights and momentum already; elsewhere that is the step.

    A gradient goes straight through the mask, so that `before.grads` is that of the effective weights, the hidden ones
    included.  Momentum of a hidden weight is 0: what the optimiser makes of its gradient is cleared after it.  An
    optimiser that looks at all gradients together (clipping by their norm) sees those of hidden weights, too.
    """

    def init(key, kernels):
        masks = start(key, kernels)
        params = {path: kernel * masks[path] for path, kernel in kernels.items()}
        return params, {path: Connections(masks[path]) for path in kernels}

    def weights(params, state, key):
        return {path: straight_through(leaf * state[path].mask, leaf) for path, leaf in params.items()}

    def finish(key, step, before: Step, after: Step) -> Step:
        trained = masked(after, {path: one.mask for path, one in after.state.items()})
        return lax.cond(due(step), lambda: change(key, step, before, trained), lambda: trained)

    return Learner(init, weights, lambda params, state: {path: one.mask for path, one in state.items()}, finish=finish)


def masked(now: Step, masks: Mapping[str, Array]) -> Step:
    """Return a step with other masks, in which hidden weights are 0, and what the optimiser holds of them."""

    def shown(leaf, mask):
        return jnp.where(mask > 0, leaf, 0) if jnp.shape(leaf) == mask.shape else leaf

    return now._replace(
        params={path: shown(leaf, masks[path]) for path, leaf in now.params.items()},
        state={path: Connections(masks[path]) for path in now.state},
        opt=map_by_layer(shown, now.opt, masks),
    )


def regrown(kept: Float[Array, "..."], mask: Float[Array, "..."], scores: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return a mask of those kept, and of as many others as the layer's mask has lost: those with the largest scores.

    Those just dropped are among them.  scores: of the mask's shape.
    """
    return kept + top(scores, jnp.count_nonzero(mask) - jnp.count_nonzero(kept), among=1 - kept)


def pruned(now: Step, number: Any) -> Step:
    """Return a step with the weights alone whose |w| is above the `number`-th largest of the whole net.

    Strictly above: without ties, one less than `number` weights are kept.
    """
    size = {path: jnp.abs(leaf) for path, leaf in now.params.items()}
    return masked(now, largest_of_all(size, number - 1, ties="none"))


def survivors(weight: Float[Array, "..."], mask: Float[Array, "..."], share: Any) -> Float[Array, "..."]:
    """Return a layer's mask without the ceil(share * ones) smallest of its weights, nor any equal to the last of them.

    weight: 0 where the mask is.
    """
    size, active = jnp.abs(weight), jnp.count_nonzero(mask)
    lost = jnp.ceil(share * active).astype(jnp.int32)
    return largest(size, active - lost, ties="none").astype(mask.dtype)
