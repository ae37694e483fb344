import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.ops.activations import ACTIVATIONS, activation_named, elu, sign


def test_sign_and_its_gradient_are_bnns():
    # Golden: BNN's program, run under Theano.
    x = jnp.array([-2, -1.0001, -1, -0.5, -0.01, 0, 0.01, 0.5, 1, 1.0001, 2])
    np.testing.assert_array_equal(sign(x), [-1, -1, -1, -1, -1, 1, 1, 1, 1, 1, 1])
    gradient = [0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0]
    np.testing.assert_array_equal(jax.vmap(jax.grad(sign))(x), gradient)
    np.testing.assert_array_equal(jax.jvp(sign, (x,), (3 * jnp.ones_like(x),))[1], 3 * np.array(gradient))
    np.testing.assert_array_equal(jax.jit(sign)(x), sign(x))


def test_sign_keeps_nan_and_the_type():
    np.testing.assert_array_equal(sign(jnp.array([jnp.nan, jnp.inf, -jnp.inf, -0.0])), [np.nan, 1, -1, 1])
    x = jnp.array([-0.5, 2.0], jnp.bfloat16)
    assert sign(x).dtype == jax.vmap(jax.grad(sign))(x).dtype == jnp.bfloat16


def test_activations_by_name_are_monotone():
    x = jnp.linspace(-3, 3, 61)
    for name, function in ACTIVATIONS.items():
        assert activation_named(name) is function
        assert (jnp.diff(function(x)) >= 0).all()
    assert activation_named("elu") is elu
    with pytest.raises(UserError, match="unknown activation 'gelu'; known are elu, relu, sign"):
        activation_named("gelu")
