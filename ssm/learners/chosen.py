"""What the methods that choose weights by scores have in common: frozen kernels, scores, how many are kept."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ssm.initializers import Initializer
from ssm.learners.base import Layers, Learner, in_order
from ssm.learners.selection import Ties, largest

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


def largest_of_all(values: Layers, kept: Any, *, ties: Ties) -> dict[str, Array]:
    """Return masks of the `kept` largest of all layers' values together, of their shapes and dtype."""
    paths = in_order(values)
    flat = largest(jnp.concatenate([values[path].ravel() for path in paths]), kept, ties=ties)
    parts = jnp.split(flat, np.cumsum([values[path].size for path in paths])[:-1])
    return {
        path: one.reshape(values[path].shape).astype(values[path].dtype) for path, one in zip(paths, parts, strict=True)
    }


def kept_of(size: int, density: Any) -> Any:
    """Return how many of `size` weights edge-popup's program keeps: all but int((1 - density) * size).

    In double precision, where density is a Python number; a traced one is rounded in float32.
    """
    hidden = (1 - density) * size
    return size - (int(hidden) if isinstance(hidden, float) else jnp.floor(hidden).astype(jnp.int32))
