"""Functions of the networks that Flax has only slower: the activation, max-pools, and what follows a convolution."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float


@jax.custom_vjp
def elu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return the exponential linear unit with alpha 1: x above 0, exp(x) - 1 at or below it.

    `exp` instead of `jax.nn.elu`'s `expm1`, and a gradient made from the output: half the time on a CPU, for an
    absolute error of at most one unit in the last place of 1.  Source: equation 2 of the paper.
    """
    return jnp.where(x > 0, x, jnp.exp(jnp.minimum(x, 0)) - 1)  # eq. 2


def _elu_forward(x):
    y = elu(x)
    return y, y


def _elu_backward(y, cotangent):
    return (jnp.where(y > 0, cotangent, cotangent * (y + 1)),)


elu.defvjp(_elu_forward, _elu_backward)


def max_pool(x: Float[Array, "batch height width channels"]) -> Float[Array, "batch rows columns channels"]:
    """Return the largest of each 2x2 window, windows side by side; an odd last row or column is left out.

    The gradient goes to one element of a window, the first in row-major order where several are largest, as
    TensorFlow's and `flax.linen.max_pool`'s does, without the scatter that makes theirs slow on a CPU.
    """
    return _pool(_even(x))


def _even(x: Array) -> Array:
    return x[:, : x.shape[1] // 2 * 2, : x.shape[2] // 2 * 2]


@jax.custom_vjp
def _pool(x):
    return _pool_forward(x)[0]


def _pool_forward(x):
    batch, height, width, channels = x.shape
    windows = x.reshape(batch, height // 2, 2, width // 2, 2, channels)
    corners = [windows[:, :, row, :, column] for row in range(2) for column in range(2)]
    largest = jnp.maximum(jnp.maximum(corners[0], corners[1]), jnp.maximum(corners[2], corners[3]))
    # In float32: XLA compares small integers on a CPU so slowly that the gradient would take twice as long.
    chosen = jnp.full(largest.shape, 3, jnp.float32)
    for index in (2, 1, 0):
        chosen = jnp.where(corners[index] == largest, jnp.float32(index), chosen)
    return largest, chosen


def _pool_backward(chosen, cotangent):
    batch, rows, columns, channels = cotangent.shape
    index = jnp.arange(4, dtype=jnp.float32).reshape(2, 1, 2, 1)
    spread = jnp.where(chosen[:, :, None, :, None] == index, cotangent[:, :, None, :, None], 0)
    return (spread.reshape(batch, 2 * rows, 2 * columns, channels),)


_pool.defvjp(_pool_forward, _pool_backward)


@jax.custom_vjp
def smooth_pool(x: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
    """Return the largest of the 3x3 window around each pixel, as far as it lies in the image.

    The gradient goes to one element of a window, the first in row-major order where several are largest, as
    `flax.linen.max_pool`'s does, which takes a fifth of a ResNet20's step on a CPU.
    """
    return _smooth_forward(x)[0]


def _smooth_forward(x):
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=-jnp.inf)
    window = [padded[:, row : row + height, column : column + width] for row in range(3) for column in range(3)]
    largest = functools.reduce(jnp.maximum, window)
    chosen = jnp.full(largest.shape, 8, jnp.float32)
    for index in range(7, -1, -1):
        chosen = jnp.where(window[index] == largest, jnp.float32(index), chosen)
    return largest, chosen


def _smooth_backward(chosen, cotangent):
    height, width = cotangent.shape[1:3]
    edges = ((0, 0), (1, 1), (1, 1), (0, 0))
    chosen, cotangent = jnp.pad(chosen, edges, constant_values=-1), jnp.pad(cotangent, edges)
    total = jnp.zeros((), cotangent.dtype)
    for index in range(9):
        # The pixel is element `index` of the window whose centre lies so far from it in the other direction.
        row, column = 2 - index // 3, 2 - index % 3
        here = (slice(None), slice(row, row + height), slice(column, column + width))
        total = total + jnp.where(chosen[here] == index, cotangent[here], 0)
    return (total,)


smooth_pool.defvjp(_smooth_forward, _smooth_backward)


class Then(NamedTuple):
    """What follows a convolution, so that it can be done while a few images are still in a processor's cache.

    function: x -> y, differentiable.  forward: x -> (y, residual), and backward: (y, residual, cotangent of y, shape of
    x) -> cotangent of x, for those who loop over blocks of images themselves.
    """

    function: Callable[[Array], Array]
    forward: Callable[[Array], tuple[Array, Any]]
    backward: Callable[[Array, Any, Array, Sequence[int]], Array]


def _pooled(x: Array) -> tuple[Array, Array]:
    largest, chosen = _pool_forward(_even(x))
    return elu(largest), chosen


def _pooled_backward(y: Array, chosen: Array, cotangent: Array, shape: Sequence[int]) -> Array:
    (spread,) = _pool_backward(chosen, *_elu_backward(y, cotangent))
    return jnp.pad(spread, [(0, size - made) for size, made in zip(shape, spread.shape, strict=True)])


NOTHING = Then(lambda x: x, lambda x: (x, ()), lambda y, residual, cotangent, shape: cotangent)
ELU = Then(elu, lambda x: (elu(x), ()), lambda y, residual, cotangent, shape: _elu_backward(y, cotangent)[0])
# ELU is monotone: after the pool it gives what it gives before, for a quarter of the work.
POOL_ELU = Then(lambda x: elu(max_pool(x)), _pooled, _pooled_backward)


def conv_general_dilated(*args, then: Then = NOTHING, **options) -> Array:
    """Convolve as `jax.lax.conv_general_dilated` does, and apply what follows."""
    return then.function(lax.conv_general_dilated(*args, **options))
