"""Convolution as a matrix product of image patches and the kernel (image to columns): 3 x 3, stride 1, same size."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ssm.ops.matmul import Round


def transform_kernel(w: Float[Array, "3 3 i o"]) -> Float[Array, "3 3 i o"]:
    """Return the kernel unchanged: the counterpart of `ssm.ops.winograd.transform_kernel`."""
    return w


def untransform_kernel(dw: Float[Array, "3 3 i o"]) -> Float[Array, "3 3 i o"]:
    """Return the cotangent of `transform_kernel`'s kernel: the same."""
    return dw


def patches(x: Float[Array, "b h w i"]) -> Float[Array, "pixels nine_i"]:
    """Return the 3 x 3 neighbourhood of every pixel, zeros beyond the edge, in the order of a kernel's axes."""
    batch, height, width, features = x.shape
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifted = [padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return jnp.concatenate(shifted, -1).reshape(batch * height * width, 9 * features)


def forward(x: Float[Array, "b h w i"], w: Float[Array, "3 3 i o"], rounded: Round) -> Float[Array, "b h w o"]:
    """Convolve a block of images with a (rounded) kernel."""
    product = jnp.dot(patches(rounded(x)), w.reshape(-1, w.shape[-1]), preferred_element_type=jnp.float32)
    return product.reshape(*x.shape[:3], w.shape[-1])


def backward(
    x: Float[Array, "b h w i"], w: Float[Array, "3 3 i o"], g: Float[Array, "b h w o"], rounded: Round, *, inputs: bool
) -> tuple[Float[Array, "b h w i"] | None, Float[Array, "3 3 i o"]]:
    """Return a block's cotangents of its images (None unless `inputs`) and of the kernel."""
    flat = rounded(g).reshape(-1, g.shape[-1])
    dw = jnp.dot(patches(rounded(x)).T, flat, preferred_element_type=jnp.float32).reshape(w.shape)
    # The gradient of a convolution is one with the kernel rotated by 180 degrees.
    return (forward(g, w[::-1, ::-1].swapaxes(2, 3), rounded) if inputs else None), dw
