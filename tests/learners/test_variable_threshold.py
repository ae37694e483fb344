import jax
import jax.numpy as jnp
import pytest

from ssm.learners import variable_threshold
from tests.support.literature import gradient, inputs, objective, scores


def test_both_ends_are_half_of_the_share():
    learner = variable_threshold(density=0.5)
    found = learner.masks({"a": jnp.asarray([5.0, 1.0, -1.0, -4.0, 3.0, 4.0])}, {})
    assert found["a"].tolist() == [1, 0, 0, -1, 0, 1] or int(jnp.abs(found["a"]).sum()) == 3


def test_ends_are_quantiles_not_magnitudes():
    found = variable_threshold(density=0.5).masks({"a": jnp.arange(1.0, 9.0)}, {})
    assert found["a"].tolist() == [-1, -1, 0, 0, 0, 0, 1, 1]


def test_gradients_go_straight_to_the_scores():
    _, _, kernels = inputs("mlp")
    learner, loss, params = variable_threshold(density=0.3), objective("mlp"), scores("mlp")
    weights = learner.weights(params, kernels, None)
    at_weights = jax.grad(loss)(weights)
    found = gradient(learner, loss, params, kernels)
    for path in kernels:
        assert jnp.allclose(found[path], at_weights[path] * kernels[path])


@pytest.mark.parametrize("density", [0.02, 0.1, 0.5])
def test_the_share_is_exact(density):
    score = jax.random.normal(jax.random.key(0), (100, 50))
    found = variable_threshold(density=density).masks({"a": score}, {})["a"]
    assert int(jnp.abs(found).sum()) == round(density * 5000)
    assert int(found.sum()) == 0
