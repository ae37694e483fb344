"""Convolutions with custom gradients, for `nn.Conv(conv_general_dilated=...)`: fast where XLA's are not.

On a CPU the weight gradient of autodiff is thirty times slower inside `lax.scan`, and matrix products are fastest on a
few images at a time, whose patches or tiles stay in the cache.  The rule that chooses a layer's form comes from the
measurements of `experiments/benchmarks/convolutions.py` (docs/speed.md).

Patches and Winograd's form are for a CPU.  On a GPU they move four to five times the bytes of XLA's own convolution
(Conv4, docs/gpu.md), and are taken there only if they are asked for.
"""

from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from ssm.ops import filter_gradient, im2col, winograd
from ssm.ops.epilogue import IDENTITY, Epilogue
from ssm.ops.filter_gradient import NUMBERS
from ssm.ops.matmul import Round, bfloat16_dot_general, native_bfloat16, operand

Form: TypeAlias = Literal["auto", "xla", "im2col", "winograd"]
FORMS: dict[Form, Any] = {"im2col": im2col, "winograd": winograd}

WINOGRAD_FEATURES = 16
"""Winograd's form is the faster one on a CPU for layers of at least so many inputs and outputs."""
TILES = 256
"""Tiles of 2 x 2 outputs per block on a CPU: enough for efficient products, few enough for the cache."""


class _Plan(NamedTuple):
    """The static choices of one convolution."""

    form: Form
    block: int  # images at a time
    bfloat16: bool
    epilogue: Epilogue


def choose(x: tuple[int, ...], w: tuple[int, ...], backend: str) -> Form:
    """Return the form for images [b, h, w, i] and a kernel [3, 3, i, o], stride 1, of the same size as the output."""
    if backend != "cpu":
        return "xla"
    even = x[1] % 2 == 0 and x[2] % 2 == 0
    return "winograd" if even and min(w[2:]) >= WINOGRAD_FEATURES else "im2col"


def block_size(batch: int, height: int, width: int) -> int:
    """Return how many images are taken at a time: the largest divisor of the batch with at most TILES tiles."""
    if jax.default_backend() != "cpu":
        return batch
    most = max(1, TILES * 4 // (height * width))
    return next((count for count in range(min(most, batch), 0, -1) if batch % count == 0), batch)


def conv_general_dilated(
    lhs: Float[Array, "b h w i"],
    rhs: Float[Array, "kh kw i o"],
    window_strides,
    padding,
    *,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    feature_group_count: int = 1,
    precision=None,
    epilogue: Epilogue = IDENTITY,
    form: Form = "auto",
    bfloat16: bool = False,
) -> Float[Array, "b h w o"]:
    """Convolve as `jax.lax.conv_general_dilated` does, in a form that is fast for the layer.

    `form` forces one where it applies: 3 x 3, stride 1, padding 1, and even sides for `winograd`; all else is XLA's,
    with the filter gradient of `ssm.ops.filter_gradient` on a GPU.
    With `bfloat16` the operands of products are rounded.  Patches, Winograd's form and 1 x 1 products give float32
    sums, forward and backward; XLA's own form gives both gradients rounded to bfloat16, and where bfloat16 is native (a
    GPU) the output, too.  The output, float32 again, goes through `epilogue`.
    """
    plain = _is_plain(lhs, rhs, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count)
    if plain and form != "xla":
        if rhs.shape[:2] == (1, 1) and (isinstance(padding, str) or not np.any(padding)):
            return epilogue.function(_pointwise(lhs, rhs, window_strides, bfloat16))
        if _is_same_3x3(rhs, window_strides, padding):
            if form == "auto" or (form == "winograd" and (lhs.shape[1] % 2 or lhs.shape[2] % 2)):
                form = choose(lhs.shape, rhs.shape, jax.default_backend())
            if form != "xla":
                plan = _Plan(form, block_size(*lhs.shape[:3]), bfloat16, epilogue)
                result: Array = _convolve(plan, lhs, rhs)  # type: ignore[assignment]
                return result
    rounded = _rounding(bfloat16)
    if plain and jax.default_backend() != "cpu":
        y = filter_gradient.convolve(rounded(lhs), rounded(rhs), window_strides, padding, precision)
        return epilogue.function(y.astype(jnp.float32))
    options: dict[str, Any] = {"dimension_numbers": dimension_numbers, "feature_group_count": feature_group_count}
    options |= {"lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation, "precision": precision}
    y = lax.conv_general_dilated(rounded(lhs), rounded(rhs), window_strides, padding, **options)
    return epilogue.function(y.astype(jnp.float32) if bfloat16 else y)


def _is_plain(lhs, rhs, lhs_dilation, rhs_dilation, dimension_numbers, groups) -> bool:
    if lhs.ndim != 4 or groups != 1 or any(d != 1 for d in (*(lhs_dilation or ()), *(rhs_dilation or ()))):
        return False
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    return numbers == lax.conv_dimension_numbers(lhs.shape, rhs.shape, NUMBERS)


def _is_same_3x3(rhs, strides, padding) -> bool:
    same = padding == "SAME" if isinstance(padding, str) else tuple(map(tuple, padding)) == ((1, 1), (1, 1))
    return rhs.shape[:2] == (3, 3) and tuple(strides) == (1, 1) and same


def _rounding(bfloat16: bool) -> Round:
    """Return the function applied to the operands of a product."""
    return partial(operand, native=native_bfloat16()) if bfloat16 else lambda x: x


def _pointwise(x: Array, w: Array, strides, bfloat16: bool) -> Array:
    """Convolve 1 x 1: a matrix product, as are its gradients."""
    x = x[:, :: strides[0], :: strides[1]]
    matrix = w.reshape(w.shape[-2:])
    numbers = (((3,), (0,)), ((), ()))
    return bfloat16_dot_general(x, matrix, numbers) if bfloat16 else lax.dot_general(x, matrix, numbers)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _convolve(plan: _Plan, x: Array, w: Array) -> Array:
    return _blocks_forward(plan, x, w)[0]


def _blocks_forward(plan: _Plan, x: Array, w: Array) -> tuple[Array, Any]:
    """Return the convolution after its epilogue, and the epilogue's residual."""
    rounded, form = _rounding(plan.bfloat16), FORMS[plan.form]
    kernel = rounded(form.transform_kernel(w))

    def convolve(block: Array) -> tuple[Array, Any]:
        return plan.epilogue.forward(form.forward(block, kernel, rounded))

    if plan.block == x.shape[0]:
        return convolve(x)
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), lax.map(convolve, _split(x, plan.block)))


def _split(tree: Any, block: int) -> Any:
    return jax.tree.map(lambda a: a.reshape(-1, block, *a.shape[1:]), tree)


def _forward(plan, x, w):
    y, residual = _blocks_forward(plan, x.value, w.value)
    # The cotangent of the first layer's images is not needed; None and () are both trees without leaves.
    return y, (x.value, w.value, y, residual, () if x.perturbed else None)


def _backward(plan, residuals, g):
    x, w, y, residual, asked = residuals
    rounded, form = _rounding(plan.bfloat16), FORMS[plan.form]
    kernel = rounded(form.transform_kernel(w))

    def add(total, block):
        x, y, residual, g = block
        g = plan.epilogue.backward(y, residual, g, (*x.shape[:3], w.shape[-1]))
        dx, dw = form.backward(x, kernel, g, rounded, inputs=asked is not None)
        return total + dw, dx

    total, blocks = jnp.zeros(kernel.shape, jnp.float32), (x, y, residual, g)
    dw, dx = add(total, blocks) if plan.block == x.shape[0] else lax.scan(add, total, _split(blocks, plan.block))
    dx = jnp.zeros_like(x) if dx is None else dx.reshape(x.shape)
    return dx, form.untransform_kernel(dw)


_convolve.defvjp(_forward, _backward, symbolic_zeros=True)
