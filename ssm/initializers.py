"""Initialisers for weights and scores: a distribution, and its standard deviation c, computed from the fans.

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

from ssm.errors import UserError, require, require_function

Scale = Callable[[int, int], Any]
"""(fan_in, fan_out) -> standard deviation c, a number or a traced scalar."""

Initializer = Callable[..., Array]
"""(key, shape, dtype=float32) -> array of that shape and dtype, as in `jax.nn.initializers`."""

ELUS_FCN = math.sqrt(3)
"""Factor on He for the FCN, c^2 * fan_in = 6."""

ELUS_CONV = math.sqrt(1.5)
"""Factor on He for Conv2 to Conv8 and the ResNets, c^2 * fan_in = 3; with 4.5 or more they do not learn."""


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """Return (fan_in, fan_out), the connections into and out of one unit of a kernel.

    `shape` is (in, out) for a dense layer and (height, width, in, out) for a convolution; leading axes
    multiply both fans.  Raises `UserError` for fewer than 2 axes, or an axis of length 0.  Source: the
    authors' program (and `jax.nn.initializers`).
    """
    if len(shape) < 2 or 0 in shape:
        raise UserError(
            f"cannot take fan_in and fan_out of shape {tuple(shape)}: a kernel needs at least the axes "
            "(in, out), none of length 0; give biases and norm scales an initialiser of their own"
        )
    field = math.prod(shape[:-2])
    return field * shape[-2], field * shape[-1]


def he(factor: float = 1.0) -> Scale:
    """Return the scale c = factor * sqrt(2 / fan_in).

    Raises `UserError` unless factor > 0.  Source: He et al. 2015.
    """
    require(factor, "factor", "above 0", lambda value: 0 < value < math.inf)
    return lambda fan_in, fan_out: factor * math.sqrt(2 / fan_in)


def xavier() -> Scale:
    """Return the scale c = sqrt(2 / (fan_in + fan_out)).  Source: Glorot and Bengio 2010."""
    return lambda fan_in, fan_out: math.sqrt(2 / (fan_in + fan_out))


def elu() -> Scale:
    """Return the scale c = sqrt(1.5 / fan_in) = sqrt(0.75) * He of the dense baselines.

    Source: equation 3 of the paper with p0 = 0.
    """
    return paper_formula(0.0)


def elus(factor: float = ELUS_FCN) -> Scale:
    """Return the scale c = factor * sqrt(2 / fan_in), He scaled for masks.

    `factor` is `ELUS_FCN` or, for the convolutional nets, `ELUS_CONV`.  Raises `UserError` unless
    factor > 0.  Source: the paper's paragraph "Initialization" and the authors' program.
    """
    return he(factor)


def paper_formula(p0: float, *, fan: str = "in") -> Scale:
    """Return the scale c = sqrt(1.5 / (n * (1 - p0))), where p0 is the share hidden at initialisation.

    `fan` chooses n: 'in', as in the authors' program, or 'out', as in the paper's text.  Raises `UserError`
    for another `fan`, or a p0 outside [0, 1).  Source: equation 3 (and 24) of the paper.
    """
    require(p0, "p0", "in [0, 1)", lambda value: 0 <= value < 1)
    if fan not in ("in", "out"):
        raise UserError(f"fan must be 'in' or 'out', got {fan!r}")

    def scale(fan_in, fan_out):
        n = fan_in if fan == "in" else fan_out
        return (1.5 / (n * (1 - p0))) ** 0.5  # eq. 3

    return scale


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


SCALES: dict[str, Callable[..., Scale]] = {
    "he": he,
    "xavier": xavier,
    "elu": elu,
    "elus": elus,
    "paper_formula": paper_formula,
}
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
