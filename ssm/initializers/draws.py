"""Initialisers for weights and scores: draws of a distribution, whose standard deviation c a scale gives.

`jax.nn.initializers.variance_scaling` has no signed constant, takes no traced factor, and rounds c differently.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from ssm.errors import UserError, require_function
from ssm.initializers.scales import SCALES, Scale, fans

Initializer = Callable[..., Array]
"""(key, shape, dtype=float32) -> array of that shape and dtype, as in `jax.nn.initializers`."""


def signed_constant(scale: Scale) -> Initializer:
    """Return the initialiser that draws +c or -c, each with probability 1/2.

    Shape and float dtype are the requested ones; raises `UserError` as `fans` does, for a dtype that is not float, or
    for what is no scale.
    Source: the paper's paragraph "Initialization".
    """
    require_function(scale, "scale", "ssm.initializers.he()", 2)

    def init(key: Array, shape: Sequence[int], dtype: DTypeLike = jnp.float32) -> Array:
        c = jnp.asarray(_deviation(scale, shape, dtype), dtype)
        return c * _flat(jax.random.rademacher, key, shape, dtype)

    return init


def uniform(scale: Scale) -> Initializer:
    """Return the initialiser that draws from U(-b, b) with b = sqrt(3) * c, whose standard deviation is c.

    `uniform(xavier())` has b = sqrt(6 / (fan_in + fan_out)), the paper's scores.  Shape, dtype and errors are
    as in `signed_constant`; narrower dtypes get the float32 draw, rounded.
    """
    require_function(scale, "scale", "ssm.initializers.he()", 2)

    def init(key: Array, shape: Sequence[int], dtype: DTypeLike = jnp.float32) -> Array:
        b = math.sqrt(3) * _deviation(scale, shape, dtype)
        wide = _wide(dtype)
        b = jnp.asarray(b, wide)
        return _flat(jax.random.uniform, key, shape, wide, -b, b).astype(dtype)

    return init


def normal(scale: Scale) -> Initializer:
    """Return the initialiser that draws from N(0, c^2), not truncated.

    Shape, dtype and errors are as in `uniform`.
    """
    require_function(scale, "scale", "ssm.initializers.he()", 2)

    def init(key: Array, shape: Sequence[int], dtype: DTypeLike = jnp.float32) -> Array:
        c = _deviation(scale, shape, dtype)
        wide = _wide(dtype)
        c = jnp.asarray(c, wide)
        return (c * _flat(jax.random.normal, key, shape, wide)).astype(dtype)

    return init


DISTRIBUTIONS: dict[str, Callable[[Scale], Initializer]] = {
    "signed_constant": signed_constant,
    "uniform": uniform,
    "normal": normal,
}


def by_name(scale: str, distribution: str = "signed_constant", **options: Any) -> Initializer:
    """Return the initialiser of these names: `by_name("elus", "signed_constant", factor=ELUS_CONV)`.

    `options` go to the scale.  Raises `UserError` with the known names for an unknown name, or an option that
    the scale does not take or needs.
    """
    if scale not in SCALES:
        raise UserError(f"unknown initialisation {scale!r}; known are {', '.join(SCALES)}")
    if distribution not in DISTRIBUTIONS:
        raise UserError(f"unknown distribution {distribution!r}; known are {', '.join(DISTRIBUTIONS)}")
    signature = inspect.signature(SCALES[scale])
    try:
        signature.bind(**options)
    except TypeError as error:
        taken = ", ".join(signature.parameters) or "none"
        raise UserError(f"initialisation {scale!r}: {error}; its options are: {taken}") from None
    return DISTRIBUTIONS[distribution](SCALES[scale](**options))


def _deviation(scale: Scale, shape: Sequence[int], dtype: DTypeLike) -> Any:
    if not jnp.issubdtype(dtype, jnp.floating):
        raise UserError(
            f"initialisers draw floats, got dtype {jnp.dtype(dtype).name}; use float32, bfloat16 or float16"
        )
    return scale(*fans(shape))


def _flat(draw: Callable[..., Array], key: Array, shape: Sequence[int], *options: Any) -> Array:
    """Return `draw(key, shape, *options)`, drawn flat, which XLA compiles in a fraction of the time."""
    return draw(key, (math.prod(shape),), *options).reshape(tuple(shape))


def _wide(dtype: DTypeLike) -> DTypeLike:
    # A bfloat16 uniform of jax.random takes 128 values and has mean -b / 128: draw wider, then round.
    return dtype if jnp.finfo(dtype).bits >= 32 else jnp.float32
