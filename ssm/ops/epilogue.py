"""Epilogues of a convolution: functions applied to its output block by block, while a block is still in the cache."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ssm.ops.activations import elu, elu_backward
from ssm.ops.pooling import even_sided, max_pool, max_pool_backward, max_pool_forward


class Epilogue(NamedTuple):
    """A function applied to a convolution's output x, also in parts that a loop over blocks of images can call.

    function: x -> y, differentiable by autodiff.
    forward, backward: x -> (y, residual) and (y, residual, cotangent of y, shape of x) -> cotangent of x.
    """

    function: Callable[[Array], Array]
    forward: Callable[[Array], tuple[Array, Any]]
    backward: Callable[[Array, Any, Array, Sequence[int]], Array]


def _pooled(x: Array) -> tuple[Array, Array]:
    largest, chosen = max_pool_forward(even_sided(x))
    return elu(largest), chosen


def _pooled_backward(y: Array, chosen: Array, cotangent: Array, shape: Sequence[int]) -> Array:
    (spread,) = max_pool_backward(chosen, *elu_backward(y, cotangent))
    return jnp.pad(spread, [(0, size - made) for size, made in zip(shape, spread.shape, strict=True)])


IDENTITY = Epilogue(lambda x: x, lambda x: (x, ()), lambda y, residual, cotangent, shape: cotangent)
ELU = Epilogue(elu, lambda x: (elu(x), ()), lambda y, residual, cotangent, shape: elu_backward(y, cotangent)[0])
# ELU is monotone: applied after the pool it gives the same result for a quarter of the work.
POOL_ELU = Epilogue(lambda x: elu(max_pool(x)), _pooled, _pooled_backward)


def conv_general_dilated(*args, epilogue: Epilogue = IDENTITY, **options) -> Array:
    """Convolve as `jax.lax.conv_general_dilated` does, and apply the epilogue."""
    return epilogue.function(lax.conv_general_dilated(*args, **options))
