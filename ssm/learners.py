"""Mask learners: named triples of pure functions that the wrapper and the trainer know nothing more about."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ssm.ternary import binarize, ternarize


class Thresholds(NamedTuple):
    """The two thresholds of one layer: scalars of the scores' dtype."""

    lower: Array
    upper: Array


class Learner(NamedTuple):
    """How a layer's scores become its effective weight.

    scores: (key, kernel, initializer) -> scores of the kernel's shape and dtype, at initialisation.
    weight: (kernel, scores, thresholds) -> effective weight; differentiable in the scores.
    mask: (scores, thresholds) -> mask, of the scores' shape and dtype.
    gauge: whether kernel signs are a gauge when magnitudes are equal and thresholds symmetric, see `training.gauge`.
    """

    name: str
    scores: Callable[..., Array]
    weight: Callable[[Array, Array, Thresholds], Array]
    mask: Callable[[Array, Thresholds], Array]
    gauge: bool = False


def _drawn(key, kernel, initializer):
    return initializer(key, kernel.shape, kernel.dtype)


def _signed_mask(scores, thresholds):
    return ternarize(scores, thresholds.lower, thresholds.upper)


def _binary_mask(scores, thresholds):
    return binarize(scores, thresholds.upper)


signed = Learner(
    name="signed",
    scores=_drawn,
    weight=lambda kernel, scores, thresholds: kernel * _signed_mask(scores, thresholds),
    mask=_signed_mask,
    gauge=True,
)
"""The signed Supermask: keep, hide or invert each frozen weight."""

binary = Learner(
    name="binary",
    scores=_drawn,
    weight=lambda kernel, scores, thresholds: kernel * _binary_mask(scores, thresholds),
    mask=_binary_mask,
)
"""The binary Supermask of figure bin_mask_comparison: keep or hide."""

baseline = Learner(
    name="baseline",
    scores=lambda key, kernel, initializer: kernel,
    weight=lambda kernel, scores, thresholds: scores,
    mask=lambda scores, thresholds: jnp.ones_like(scores),
)
"""The dense net: the scores are the weights themselves, and nothing is masked."""

LEARNERS = {learner.name: learner for learner in (signed, binary, baseline)}
