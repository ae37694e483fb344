"""Matrix products of bfloat16 or TF32 operands summed in float32, forward and backward."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import Array, lax

from ssm.errors import UserError

PRECISION = "highest"
"""Precision of float32 products, for `jax.default_matmul_precision`; by default a GPU's would be TF32."""

TF32 = {"tf32": lax.DotAlgorithmPreset.TF32_TF32_F32, "tf32x3": lax.DotAlgorithmPreset.TF32_TF32_F32_X3}
"""Products of an NVIDIA GPU's TF32 units: of operands rounded to 10 bits, or three of them for nearly float32's 23."""

Round = Callable[[Array], Array]
"""Rounds the operands of products, or returns them as they are."""


def native_bfloat16() -> bool:
    """Return whether the default backend multiplies bfloat16 natively; a CPU needs AVX512_BF16 or AMX for it."""
    if jax.default_backend() != "cpu":
        return True
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def operand(x: Array, native: bool) -> Array:
    """Return an operand of a product: as bfloat16 where such products are native, else rounded in float32."""
    # Without hardware for it, XLA's own bfloat16 product is slower than a float32 product of the rounded
    # operands, which gives the same numbers: a product of two bfloat16 is exact in float32.
    return x.astype(jnp.bfloat16) if native else round_to_bfloat16(x)


def _product(lhs: Array, rhs: Array, lhs_axis: int, rhs_axis: int) -> Array:
    return lax.dot_general(lhs, rhs, (((lhs_axis,), (rhs_axis,)), ((), ())), preferred_element_type=jnp.float32)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _matmul(x: Array, w: Array, native: bool) -> Array:
    return _product(operand(x, native), operand(w, native), 1, 0)


def _matmul_forward(x, w, native):
    operands = operand(x, native), operand(w, native)
    return _product(*operands, 1, 0), operands


def _matmul_backward(native, operands, cotangent):
    x, w = operands
    g = operand(cotangent, native)
    return _product(g, w, 1, 1), _product(x, g, 0, 0)


_matmul.defvjp(_matmul_forward, _matmul_backward)


def bfloat16_dot_general(
    lhs: Array, rhs: Array, dimension_numbers, precision=None, preferred_element_type=None
) -> Array:
    """Multiply as `flax.linen.Dense` does, operands and gradients rounded to bfloat16, sums in float32.

    lhs [..., k] float32, rhs [k, n] float32 -> [..., n] float32; for `nn.Dense(dot_general=bfloat16_dot_general)`.
    Where the weights are exact in bfloat16 (a ternary matrix times a bfloat16 constant) only the activations and the
    back-propagated signals are rounded.  Raises UserError for any other contraction.
    """
    contract, batch = dimension_numbers
    if tuple(map(tuple, contract)) != ((lhs.ndim - 1,), (0,)) or any(map(len, batch)) or rhs.ndim != 2:
        raise UserError(
            f"bfloat16 products are for dense layers, [..., k] times [k, n]; got {lhs.shape} times {rhs.shape} "
            f"with dimension numbers {dimension_numbers}.  Leave --precision at float32 for this model."
        )
    rows = lhs.reshape(-1, lhs.shape[-1])
    product: Array = _matmul(rows, rhs, native_bfloat16())  # type: ignore[assignment]
    return product.reshape(*lhs.shape[:-1], rhs.shape[-1])


def tf32_dot_general(
    lhs: Array,
    rhs: Array,
    dimension_numbers,
    precision=None,
    preferred_element_type=None,
    *,
    algorithm: lax.DotAlgorithmPreset,
) -> Array:
    """Multiply as `jax.lax.dot_general` does, and in both gradients, by one of the algorithms of `TF32`.

    As a precision of everything (`jax.default_matmul_precision`) it would make convolutions TF32, too.
    """
    return lax.dot_general(lhs, rhs, dimension_numbers, algorithm, preferred_element_type)


def round_to_bfloat16(x: Array) -> Array:
    """Round to the nearest bfloat16 and keep the dtype."""
    return lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)
