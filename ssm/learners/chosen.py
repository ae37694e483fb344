"""What the methods that choose weights by scores have in common: frozen kernels, scores, how many are kept."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ssm.initializers import Initializer
from ssm.learners.base import Layers, Learner, in_order

Scores = Mapping[str, Array]


def chosen(
    scores: Initializer,
    choose: Callable[[Scores, Layers], Mapping[str, Array]],
    weight: Callable[[Array, Array, Array], Array],
    **more: Any,
) -> Learner:
    """Return the learner of frozen kernels, chosen by scores that are trained.

    scores: initialiser of the scores.  choose: (scores, kernels) by layer -> masks by layer.  weight: (kernel, mask,
    score) of one layer -> effective kernel, with the gradient that the scores are to get.  more: other fields.
    """

    def init(key, kernels):
        numbered = enumerate(in_order(kernels))
        return {
            path: scores(jax.random.fold_in(key, number), kernels[path].shape, kernels[path].dtype)
            for number, path in numbered
        }, dict(kernels)

    def weights(params, state, key):
        masks = choose(params, state)
        return {path: weight(state[path], masks[path], params[path]) for path in params}

    return Learner(init, weights, choose, **more)


def kept_of(size: int, density: Any) -> Any:
    """Return how many of `size` weights edge-popup's program keeps: all but int((1 - density) * size).

    In double precision, where density is a Python number; a traced one is rounded in float32.
    """
    hidden = (1 - density) * size
    return size - (int(hidden) if isinstance(hidden, float) else jnp.floor(hidden).astype(jnp.int32))
