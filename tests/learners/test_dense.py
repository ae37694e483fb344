import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from ssm import initializers, learners
from ssm.supermask import Supermask

WEIGHTS = {"a": jnp.array([-0.5, -0.01, 0.0, 0.01, 0.5])}


def test_literal_masks_and_weights(compiled):
    learner = learners.dense()
    np.testing.assert_array_equal(compiled(learner.masks)(WEIGHTS, {"a": ()})["a"], [1, 1, 1, 1, 1])
    np.testing.assert_array_equal(compiled(learner.weights)(WEIGHTS, {"a": ()}, None)["a"], WEIGHTS["a"])


def test_gradients_to_the_weights(compiled):
    gradient = jax.grad(lambda weights: learners.dense().weights({"a": weights}, {"a": ()}, None)["a"].sum())
    np.testing.assert_array_equal(compiled(gradient)(WEIGHTS["a"]), jnp.ones(5))


def test_the_params_are_the_kernels_that_others_freeze():
    x, init = jnp.ones((2, 4)), initializers.uniform(initializers.he())
    net = Supermask(nn.Dense(30), learner=learners.dense(), kernel_init=init)
    variables = net.init(jax.random.key(0), x)
    frozen = Supermask(nn.Dense(30), kernel_init=init).init(jax.random.key(0), x)["frozen"]["layers"]
    np.testing.assert_array_equal(variables["params"]["net"]["kernel"], frozen["kernel"].kernel)
    assert not jax.tree.leaves(variables["frozen"]["layers"])
    assert set(np.unique(net.masks(variables)["kernel"])) == {1}
    assert net.learner.elementwise and not net.learner.has_masks
