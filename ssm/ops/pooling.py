"""Max-pools whose gradients are fast on a CPU."""

import functools

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


def max_pool(x: Float[Array, "batch height width channels"]) -> Float[Array, "batch rows columns channels"]:
    """Return the maximum of each 2x2 window, stride 2; an odd last row or column is dropped.

    The gradient goes to one element of a window, the first in row-major order in case of ties, as
    TensorFlow's and `flax.linen.max_pool`'s does, without the scatter that makes theirs slow on a CPU.
    """
    return _pool(even_sided(x))


def even_sided(x: Float[Array, "batch height width channels"]) -> Float[Array, "batch rows columns channels"]:
    """Return images without an odd last row or column."""
    return x[:, : x.shape[1] // 2 * 2, : x.shape[2] // 2 * 2]


@jax.custom_vjp
def _pool(x):
    return max_pool_forward(x)[0]


def max_pool_forward(x: Array) -> tuple[Array, Array]:
    """Return `max_pool` of images of even sides, and which corner (0 to 3, float32) each maximum was taken from."""
    batch, height, width, channels = x.shape
    windows = x.reshape(batch, height // 2, 2, width // 2, 2, channels)
    corners = [windows[:, :, row, :, column] for row in range(2) for column in range(2)]
    largest = jnp.maximum(jnp.maximum(corners[0], corners[1]), jnp.maximum(corners[2], corners[3]))
    # In float32: XLA compares small integers on a CPU so slowly that the gradient would take twice as long.
    chosen = jnp.full(largest.shape, 3, jnp.float32)
    for index in (2, 1, 0):
        chosen = jnp.where(corners[index] == largest, jnp.float32(index), chosen)
    return largest, chosen


def max_pool_backward(chosen: Array, cotangent: Array) -> tuple[Array]:
    """Return the cotangent of `max_pool_forward`'s images, from its second result and the cotangent of its first."""
    batch, rows, columns, channels = cotangent.shape
    index = jnp.arange(4, dtype=jnp.float32).reshape(2, 1, 2, 1)
    spread = jnp.where(chosen[:, :, None, :, None] == index, cotangent[:, :, None, :, None], 0)
    return (spread.reshape(batch, 2 * rows, 2 * columns, channels),)


_pool.defvjp(max_pool_forward, max_pool_backward)


@jax.custom_vjp
def smooth_pool(x: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
    """Return the maximum of the 3x3 window around each pixel, clipped to the image.

    The gradient goes to one element of a window, the first in row-major order in case of ties, as
    with `flax.linen.max_pool`, which would take a fifth of a ResNet20's step on a CPU.
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
        # The pixel is element `index` of the window whose centre is offset from it in the opposite direction.
        row, column = 2 - index // 3, 2 - index % 3
        here = (slice(None), slice(row, row + height), slice(column, column + width))
        total = total + jnp.where(chosen[here] == index, cotangent[here], 0)
    return (total,)


smooth_pool.defvjp(_smooth_forward, _smooth_backward)
