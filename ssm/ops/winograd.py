"""Convolution of 3 x 3 by Winograd's minimal filtering F(2 x 2, 3 x 3): 16 products for 36.

Each tile of 2 x 2 outputs comes from 4 x 4 inputs d by y = A'[(G w G') * (B' d B)]A, where the elementwise product over
tiles and channels is 16 matrix products.  G, B and A hold only 0, 1, -1 and 1/2, so float32 loses no more
than by summing in another order, and a ternary kernel's G w G' (multiples of 1/4 up to 9/4) is exact in bfloat16.
Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from ssm.ops.matmul import Round


def _kernel_side(a: Sequence[Array]) -> list[Array]:  # G
    return [a[0], 0.5 * (a[0] + a[1] + a[2]), 0.5 * (a[0] - a[1] + a[2]), a[2]]


def _input_side(a: Sequence[Array]) -> list[Array]:  # B'
    return [a[0] - a[2], a[1] + a[2], a[2] - a[1], a[1] - a[3]]


def _output_side(a: Sequence[Array]) -> list[Array]:  # A'
    return [a[0] + a[1] + a[2], a[1] - a[2] - a[3]]


def _cotangent_side(a: Sequence[Array]) -> list[Array]:  # A
    return [a[0], a[0] + a[1], a[0] - a[1], -a[1]]


def _both_axes(side: Callable, tiles: Any) -> list[list[Array]]:
    """Apply a one-dimensional transform along the rows, then the columns, of nested lists [row][column]."""
    rows = [side(column) for column in zip(*tiles, strict=True)]
    return [side(row) for row in zip(*rows, strict=True)]


def _stacked(parts: Sequence[Sequence[Array]]) -> Float[Array, "16 tiles features"]:
    return jnp.stack([part.reshape(-1, part.shape[-1]) for row in parts for part in row])


def transform_kernel(w: Float[Array, "3 3 i o"]) -> Float[Array, "16 i o"]:
    """Return G w G'."""
    return jnp.stack([part for row in _both_axes(_kernel_side, w) for part in row])


def transform_input(x: Float[Array, "b h w i"]) -> Float[Array, "16 tiles i"]:
    """Return B' d B of every tile of images of even sides, padded by zeros."""
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    tiles = [[padded[:, i : i + height - 1 : 2, j : j + width - 1 : 2] for j in range(4)] for i in range(4)]
    return _stacked(_both_axes(_input_side, tiles))


def transform_output(m: Float[Array, "16 tiles o"], shape: Sequence[int]) -> Float[Array, "b h w o"]:
    """Return the images of a shape whose tiles are A' m A."""
    batch, height, width, features = shape
    parts = m.reshape(4, 4, batch, height // 2, width // 2, features)
    tiles = _both_axes(_output_side, [list(row) for row in parts])
    return jnp.stack([jnp.stack(row, axis=3) for row in tiles], axis=2).reshape(shape)


def transform_cotangent(g: Float[Array, "b h w o"]) -> Float[Array, "16 tiles o"]:
    """Return A g A' of every tile, the cotangent of `transform_output`."""
    batch, height, width, features = g.shape
    parts = g.reshape(batch, height // 2, 2, width // 2, 2, features)
    tiles = [[parts[:, :, i, :, j] for j in range(2)] for i in range(2)]
    return _stacked(_both_axes(_cotangent_side, tiles))


def untransform_input(v: Float[Array, "16 tiles i"], shape: Sequence[int]) -> Float[Array, "b h w i"]:
    """Return the sum of all tiles B v B', each at the place of its input: the cotangent of `transform_input`."""
    batch, height, width, features = shape
    parts = v.reshape(4, 4, batch, height // 2, width // 2, features)

    def overlap(a: Any, axis: int) -> list[Array]:
        """Return the even and the odd pixels along an axis of tiles, each of which lies in two tiles."""
        first, second, third, last = a[0], a[1] - a[2] + a[3], a[1] + a[2] - a[0], -a[3]  # B
        edge = jnp.zeros_like(lax.slice_in_dim(first, 0, 1, axis=axis))
        count = first.shape[axis]
        before = lax.concatenate([edge, lax.slice_in_dim(last, 0, count - 1, axis=axis)], axis)
        after = lax.concatenate([lax.slice_in_dim(first, 1, count, axis=axis), edge], axis)
        return [second + before, third + after]

    rows = overlap(parts, 2)  # each [4, b, h/2, w/2, i]
    pixels = [jnp.stack(overlap(row, 2), axis=3) for row in rows]
    return jnp.stack(pixels, axis=2).reshape(shape)


def forward(x: Float[Array, "b h w i"], u: Float[Array, "16 i o"], rounded: Round) -> Float[Array, "b h w o"]:
    """Convolve a block of images with a transformed (and rounded) kernel."""
    m = jnp.einsum("pti,pio->pto", rounded(transform_input(x)), u, preferred_element_type=jnp.float32)
    return transform_output(m, (*x.shape[:3], u.shape[-1]))


def backward(
    x: Float[Array, "b h w i"], u: Float[Array, "16 i o"], g: Float[Array, "b h w o"], rounded: Round, *, inputs: bool
) -> tuple[Float[Array, "b h w i"] | None, Float[Array, "16 i o"]]:
    """Return a block's cotangents of its images (None unless `inputs`) and of the transformed kernel."""
    q = rounded(transform_cotangent(g))
    # Features first: XLA's product over tiles is then a third faster on a CPU.
    v = rounded(transform_input(x).swapaxes(1, 2))
    du = jnp.einsum("pit,pto->pio", v, q, preferred_element_type=jnp.float32)
    if not inputs:
        return None, du
    dv = jnp.einsum("pto,pio->pti", q, u, preferred_element_type=jnp.float32)
    return untransform_input(dv, x.shape), du


def untransform_kernel(du: Float[Array, "16 i o"]) -> Float[Array, "3 3 i o"]:
    """Return G' du G, the cotangent of `transform_kernel`."""
    shape = jax.ShapeDtypeStruct((3, 3, *du.shape[1:]), du.dtype)
    (dw,) = jax.linear_transpose(transform_kernel, shape)(du)
    return dw
