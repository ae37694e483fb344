import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from ssm import initializers, learners, thresholds
from ssm.learners.signed import Frozen
from ssm.supermask import Supermask

SCORES = jnp.array([-0.5, -0.01, 0.0, 0.01, 0.5])
KERNEL = jnp.array([1.0, -2.0, 3.0, -4.0, 5.0])
STATE = {"a": Frozen(KERNEL, jnp.float32(-0.01), jnp.float32(0.01))}


def test_literal_masks_and_weights(compiled):
    learner = learners.binary()
    np.testing.assert_array_equal(compiled(learner.masks)({"a": SCORES}, STATE)["a"], [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(compiled(learner.weights)({"a": SCORES}, STATE, None)["a"], [0, 0, 0, 0, 5])


def test_gradients_to_the_scores(compiled):
    gradient = jax.grad(lambda scores: learners.binary().weights({"a": scores}, STATE, None)["a"].sum())
    np.testing.assert_array_equal(compiled(gradient)(SCORES), KERNEL)


def test_scores_and_thresholds_are_the_factorys():
    learner = learners.binary(
        scores=initializers.uniform(initializers.he()), threshold=thresholds.quantile(0.3, one_sided=True)
    )
    params, state = learner.init(jax.random.key(0), {"a": KERNEL.reshape(1, 5) * jnp.ones((20, 1))})
    assert np.count_nonzero(learner.masks(params, state)["a"]) == 30
    assert learner.elementwise and learner.has_masks


def test_masks_of_a_net_keep_or_hide():
    net = Supermask(nn.Dense(30), learner=learners.binary())
    variables = net.init(jax.random.key(0), jnp.ones((2, 4)))
    assert set(np.unique(net.masks(variables)["kernel"])) == {0, 1}
