import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from ssm.models import FCN, count_weights, elu


def test_the_fcn_has_the_papers_weights():
    shapes = jax.eval_shape(FCN().init, jax.random.key(0), jnp.zeros((1, 28, 28, 1)))
    assert count_weights(shapes) == 266_200
    assert {path for path in shapes["params"]} == {"Dense_0", "Dense_1", "Dense_2"}
    assert all(set(layer) == {"kernel"} for layer in shapes["params"].values())


def test_elu_and_its_gradient_are_flaxs():
    x = jnp.concatenate([jnp.linspace(-30, 30, 601), jnp.array([0.0, -0.0, 1e-3, -1e-3])])
    np.testing.assert_allclose(elu(x), nn.elu(x), atol=1.2e-7)
    np.testing.assert_allclose(jax.vmap(jax.grad(elu))(x), jax.vmap(jax.grad(nn.elu))(x), atol=1.2e-7)


def test_elu_keeps_nan_and_infinities():
    np.testing.assert_array_equal(elu(jnp.array([jnp.nan, jnp.inf, -jnp.inf])), [np.nan, np.inf, -1])
