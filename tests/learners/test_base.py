import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from ssm.learners import LEARNERS, Learner, Thresholds
from ssm.supermask import Supermask

SCORES = jnp.array([-0.5, -0.01, 0.0, 0.01, 0.5])
KERNEL = jnp.array([1.0, -2.0, 3.0, -4.0, 5.0])
TAU = Thresholds(jnp.float32(-0.01), jnp.float32(0.01))


@pytest.mark.parametrize(
    ("name", "mask", "weight"),
    [
        ("signed", [-1, -1, 0, 1, 1], [-1, 2, 0, -4, 5]),
        ("binary", [0, 0, 0, 0, 1], [0, 0, 0, 0, 5]),
        ("baseline", [1, 1, 1, 1, 1], SCORES),
    ],
)
def test_literal_masks_and_weights(name, mask, weight):
    learner = LEARNERS[name]
    assert learner.name == name
    np.testing.assert_array_equal(learner.mask(SCORES, TAU), mask)
    np.testing.assert_array_equal(learner.weight(KERNEL, SCORES, TAU), weight)


def test_gradients_to_the_scores():
    def to_scores(name):
        return jax.grad(lambda s: LEARNERS[name].weight(KERNEL, s, TAU).sum())(SCORES)

    np.testing.assert_array_equal(to_scores("signed"), KERNEL)
    np.testing.assert_array_equal(to_scores("binary"), KERNEL)
    np.testing.assert_array_equal(to_scores("baseline"), jnp.ones(5))


def test_another_learner_needs_no_change_to_the_wrapper():
    def keep_best_half(scores, thresholds):
        return (jnp.abs(scores) >= jnp.median(jnp.abs(scores))).astype(scores.dtype)

    learner = Learner(
        name="best half",
        scores=lambda key, kernel, initializer: jax.random.normal(key, kernel.shape),
        weight=lambda kernel, scores, thresholds: kernel * keep_best_half(scores, thresholds),
        mask=keep_best_half,
    )
    net = Supermask(nn.Dense(8, use_bias=False), learner=learner)
    variables = net.init(jax.random.key(0), jnp.ones((1, 4)))
    assert int(net.masks(variables)["kernel"].sum()) == 16
    assert int((net.weights(variables)["kernel"] != 0).sum()) == 16
