"""What the methods that choose weights by scores have in common: frozen kernels, and scores that choose."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import jax.numpy as jnp
from jax import Array

from ssm.initializers import Initializer
from ssm.learners.base import Layers, Learner, each
from ssm.learners.options import require_one_of
from ssm.learners.selection import kept_of, largest_of_all, largest_of_each
from ssm.learners.sparsity import layer_densities

Scores = Mapping[str, Array]
Shares = Annotated[
    Literal["uniform", "erk", "global"],
    "Whether each layer keeps the same share, more the smaller it is (ERK), or what is largest in all layers together.",
]


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
        return drawn(scores, key, kernels), dict(kernels)

    def weights(params, state, key):
        masks = choose(params, state)
        return {path: weight(state[path], masks[path], params[path]) for path in params}

    return Learner(init, weights, choose, **more)


def drawn(scores: Initializer, key: Array, kernels: Layers) -> dict[str, Array]:
    """Return the scores that an initialiser draws for each kernel, of its shape and dtype."""
    return each(kernels, key, lambda path, own: scores(own, kernels[path].shape, kernels[path].dtype))


def largest_magnitudes(scores: Scores, density: Any, shares: Shares = "uniform") -> dict[str, Array]:
    """Return masks of the largest |score| of each layer, or of all, of their shapes and dtype.

    `shares`: `uniform` and `erk` as in `layer_densities`, or `global`.  Raises UserError for another.
    """
    require_one_of(shares, "shares", ("uniform", "erk", "global"))
    magnitudes = {path: jnp.abs(score) for path, score in scores.items()}
    if shares == "global":
        total = sum(score.size for score in scores.values())
        return largest_of_all(magnitudes, kept_of(total, density), ties="last")
    own = layer_densities(scores, density, shares)
    return largest_of_each(magnitudes, {path: kept_of(score.size, own[path]) for path, score in scores.items()})
