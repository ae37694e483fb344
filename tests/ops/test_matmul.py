from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.ops import matmul
from ssm.ops.matmul import TF32, bfloat16_dot_general, round_to_bfloat16, tf32_dot_general

DENSE = (((1,), (0,)), ((), ()))


def arrays(*shapes):
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return [jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True)]


@pytest.mark.parametrize("native", [False, True])
def test_operands_are_rounded_and_sums_are_float32(native, monkeypatch):
    monkeypatch.setattr(matmul, "native_bfloat16", lambda: native)
    x, w, g = arrays((5, 70), (70, 3), (5, 3))
    y, pull = jax.vjp(lambda x, w: bfloat16_dot_general(x, w, DENSE), x, w)
    rx, rw, rg = (np.asarray(a.astype(jnp.bfloat16), np.float64) for a in (x, w, g))
    np.testing.assert_allclose(y, rx @ rw, rtol=1e-5, atol=1e-5)
    to_x, to_w = pull(g)
    np.testing.assert_allclose(to_x, rg @ rw.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(to_w, rx.T @ rg, rtol=1e-5, atol=1e-5)
    assert {y.dtype, to_x.dtype, to_w.dtype} == {jnp.dtype("float32")}


def test_leading_axes_are_kept():
    x, w = arrays((2, 4, 7), (7, 3))
    y = bfloat16_dot_general(x, w, (((2,), (0,)), ((), ())))
    np.testing.assert_array_equal(y.reshape(8, 3), bfloat16_dot_general(x.reshape(8, 7), w, DENSE))


def test_a_ternary_matrix_times_a_bfloat16_constant_is_exact():
    constant = round_to_bfloat16(jnp.float32(0.0874818))
    weights = constant * jnp.array([[1.0, 0.0], [-1.0, 1.0]])
    np.testing.assert_array_equal(round_to_bfloat16(weights), weights)
    x = jnp.array([[1.5, -0.25]])  # exact in bfloat16
    np.testing.assert_array_equal(bfloat16_dot_general(x, weights, DENSE), x @ weights)


def test_other_contractions_are_an_error():
    x, w = arrays((3, 4), (3, 4))
    with pytest.raises(UserError, match="dense layers"):
        bfloat16_dot_general(x, w, (((0,), (0,)), ((), ())))


@pytest.mark.parametrize("name", TF32)
def test_tf32_is_the_algorithm_of_the_product_and_of_both_gradients(name):
    """As a CPU lacks it, this is what JAX is asked for, whatever its settings say."""
    multiply = partial(tf32_dot_general, algorithm=TF32[name])
    x, w = arrays((5, 70), (70, 3))
    with jax.default_matmul_precision("highest"):
        jaxpr = jax.make_jaxpr(jax.value_and_grad(lambda x, w: jnp.sum(multiply(x, w, DENSE) ** 2), (0, 1)))(x, w)
    products = [line for line in jaxpr.eqns if line.primitive.name == "dot_general"]
    assert [line.params["precision"] for line in products] == [TF32[name]] * 3
    assert {line.outvars[0].aval.dtype for line in products} == {jnp.dtype("float32")}
