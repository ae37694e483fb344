"""Losses of logits, one a sample: cross-entropy, plain and as the authors clip it, and the squared hinge loss."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Integer

from ssm.errors import UserError

Loss = Callable[[Array, Array], Array]

CLIP = 1e-7
"""Smallest probability that the clipped loss distinguishes from 0 (Keras' epsilon)."""


def cross_entropy(logits: Float[Array, "batch classes"], labels: Integer[Array, " batch"]) -> Float[Array, " batch"]:
    """Return -log softmax(logits)[label] of each sample, in nats and the logits' dtype.

    A label of `classes` or more gives NaN.
    """
    # optax's softmax_cross_entropy_with_integer_labels subtracts in another order, and so rounds differently.
    log_probabilities = jax.nn.log_softmax(logits, axis=-1)
    return -jnp.take_along_axis(log_probabilities, labels[:, None], axis=-1)[:, 0]


def clipped_cross_entropy(
    logits: Float[Array, "batch classes"], labels: Integer[Array, " batch"]
) -> Float[Array, " batch"]:
    """Return -log clip(softmax(logits), 1e-7, 1 - 1e-7)[label] of each sample, in nats and the logits' dtype.

    A sample whose true class has less than 1e-7 (or more than 1 - 1e-7) contributes no gradient, and
    its loss is 16.118 (or 1e-7).  Source: the authors' program; Keras' categorical cross-entropy of softmax
    outputs.
    """
    loss = cross_entropy(logits, labels)
    # Clipping the logarithm is the same function and has no small probability to round.
    low, high = jnp.asarray(-math.log1p(-CLIP), loss.dtype), jnp.asarray(-math.log(CLIP), loss.dtype)
    inside = ~((loss < low) | (loss > high))  # `where`, not `clip`, so that NaN and the bounds keep their gradient
    return jnp.where(inside, loss, jnp.where(loss < low, low, high))


def squared_hinge(logits: Float[Array, "batch classes"], labels: Integer[Array, " batch"]) -> Float[Array, " batch"]:
    """Return the mean over the classes of max(0, 1 - t * logit)^2, t = 1 for the label's class and -1 for the others.

    Source: the programs of BinaryConnect and BNN.
    """
    signs = 2 * jax.nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype) - 1
    return jnp.mean(jnp.square(jax.nn.relu(1 - signs * logits)), axis=-1)


LOSSES: dict[str, Loss] = {
    "log_softmax": cross_entropy,
    "clipped": clipped_cross_entropy,
    "squared_hinge": squared_hinge,
}


def by_name(name: str) -> Loss:
    """Return the loss of this name, 'log_softmax', 'clipped' or 'squared_hinge'; raises `UserError` for any other."""
    if name not in LOSSES:
        raise UserError(f"unknown loss {name!r}; known are {', '.join(LOSSES)}")
    return LOSSES[name]
