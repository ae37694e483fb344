"""XLA's own convolution, whose filter gradient stays one where many seeds' are computed at once on a GPU.

The convolutions of vectorised seeds are grouped ones.  JAX makes of their filter gradients forward convolutions with
windows as large as the images, which a GPU's libraries have no fast kernel for; as batch-grouped ones they are the
libraries' filter gradients.  Numbers are the same up to rounding.  Source: experiments/benchmarks/gpu_compile.py.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap
from jaxtyping import Float

NUMBERS = ("NHWC", "HWIO", "NHWC")
_FILTER = ("CHWN", "IHWO", "HWNC")  # images' inputs as a batch, their batch as features


class _Plan(NamedTuple):
    """The static choices of one convolution."""

    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    precision: Any


def convolve(
    x: Float[Array, "b h w i"],
    w: Float[Array, "kh kw i o"],
    strides: Sequence[int],
    padding: Any,
    precision: Any = None,
) -> Float[Array, "b y x o"]:
    """Convolve as `jax.lax.conv_general_dilated` does, without dilations and groups; both operands of one dtype."""
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(x.shape[1:3], w.shape[:2], strides, padding)
    plan = _Plan(tuple(strides), tuple((int(low), int(high)) for low, high in padding), precision)
    result: Array = _convolve(plan, x, w)  # type: ignore[assignment]
    return result


def _plain(plan: _Plan, x: Array, w: Array) -> Array:
    return lax.conv_general_dilated(
        x, w, plan.strides, plan.padding, dimension_numbers=NUMBERS, precision=plan.precision
    )


_convolve = jax.custom_vjp(_plain, nondiff_argnums=(0,))


def _forward(plan: _Plan, x: Array, w: Array) -> tuple[Array, tuple[Array, Array]]:
    return _plain(plan, x, w), (x, w)


def _backward(plan: _Plan, operands: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, w = operands
    (dx,) = jax.linear_transpose(lambda x: _plain(plan, x, w), x)(g)
    return dx, _filter_gradient(plan, w.shape[:2], x, g)


_convolve.defvjp(_forward, _backward)


def _filter_gradient(plan: _Plan, window: tuple[int, ...], x: Array, g: Array) -> Array:
    """Return the gradient [kh, kw, i, o] of a kernel from images [b, h, w, i] and the cotangent of the output."""
    padding = tuple(
        (low, size + (outputs - 1) * stride - inputs - low)
        for (low, _), size, stride, inputs, outputs in zip(
            plan.padding, window, plan.strides, x.shape[1:3], g.shape[1:3], strict=True
        )
    )
    convolved = partial(
        lax.conv_general_dilated,
        window_strides=(1, 1),
        padding=padding,
        rhs_dilation=plan.strides,
        dimension_numbers=_FILTER,
        precision=plan.precision,
    )

    @custom_vmap
    def gradient(x: Array, g: Array) -> Array:
        return convolved(x, g)

    @gradient.def_vmap
    def of_seeds(seeds: int, batched: Sequence[bool], x: Array, g: Array) -> tuple[Array, bool]:
        images, cotangents = (_folded(array, seeds, own) for array, own in zip((x, g), batched, strict=True))
        result = convolved(images, cotangents, batch_group_count=seeds)
        return jnp.moveaxis(result.reshape(*result.shape[:3], seeds, -1), 3, 0), True

    return gradient(x, g)


def _folded(array: Array, seeds: int, batched: bool) -> Array:
    """Return seeds' arrays [seeds, b, h, w, c] side by side, [b, h, w, seeds * c]."""
    stacked = array if batched else jnp.broadcast_to(array, (seeds, *array.shape))
    return jnp.moveaxis(stacked, 0, 3).reshape(*stacked.shape[1:4], -1)
