"""Losses: hand-computed values, dead samples, and the authors' own number."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ssm.errors import UserError
from ssm.losses import by_name, clipped_cross_entropy, cross_entropy, squared_hinge
from ssm.models import elu
from ssm.ternary import ternarize
from tests.support import golden_cases

BOTH = [cross_entropy, clipped_cross_entropy]
# The true class has p = 1/2, 3/4, e^-20 (below 1e-7) and 1 - e^-20 (above 1 - 1e-7).
LOGITS = jnp.asarray([[1.0, 1.0], [math.log(3), 0.0], [0.0, 20.0], [20.0, 0.0]])
LABELS = jnp.zeros(4, jnp.int32)


def test_cross_entropy_by_hand(compiled):
    losses = compiled(cross_entropy)(LOGITS, LABELS)
    np.testing.assert_allclose(losses[:3], [math.log(2), math.log(4 / 3), 20.0], rtol=1e-6)
    assert 0 <= losses[3] < 1e-7


def test_clipped_by_hand(compiled):
    expected = [math.log(2), math.log(4 / 3), -math.log(1e-7), 1e-7]
    np.testing.assert_allclose(compiled(clipped_cross_entropy)(LOGITS, LABELS), expected, rtol=1e-6)


def test_gradient_is_softmax_minus_one_hot_and_zero_for_dead_samples(compiled):
    def gradient(loss):
        return compiled(jax.grad(lambda logits: loss(logits, LABELS).sum()))(LOGITS)

    whole = jax.nn.softmax(LOGITS) - jax.nn.one_hot(LABELS, 2)
    np.testing.assert_allclose(gradient(cross_entropy), whole, atol=1e-6)
    np.testing.assert_allclose(gradient(clipped_cross_entropy)[:2], whole[:2], atol=1e-6)
    np.testing.assert_array_equal(gradient(clipped_cross_entropy)[2:], np.zeros((2, 2)))


def test_clipped_is_keras_formula():
    logits = 6 * jax.random.normal(jax.random.key(0), (500, 10))
    labels = jax.random.randint(jax.random.key(1), (500,), 0, 10)

    def keras(logits):
        p = jax.nn.softmax(logits)
        p = jnp.clip(p / p.sum(axis=1, keepdims=True), 1e-7, 1 - 1e-7)
        return -(jax.nn.one_hot(labels, 10) * jnp.log(p)).sum(axis=1)

    assert (cross_entropy(logits, labels) > 16.2).any()  # some are dead
    np.testing.assert_allclose(clipped_cross_entropy(logits, labels), keras(logits), rtol=1e-5, atol=3e-7)
    ours = jax.jit(jax.grad(lambda x: clipped_cross_entropy(x, labels).sum()))(logits)
    np.testing.assert_allclose(ours, jax.jit(jax.grad(lambda x: keras(x).sum()))(logits), atol=2e-6)


def test_cross_entropy_equals_optax():
    logits = jax.random.normal(jax.random.key(2), (50, 10))
    labels = jnp.arange(50) % 10
    expected = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    np.testing.assert_allclose(cross_entropy(logits, labels), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", BOTH)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_shape_and_dtype(loss, dtype):
    losses = jax.jit(loss)(LOGITS.astype(dtype), LABELS)
    chex.assert_shape(losses, (4,))
    chex.assert_type(losses, dtype)
    np.testing.assert_allclose(np.asarray(losses, np.float32), loss(LOGITS, LABELS), rtol=0.02, atol=2e-3)


@pytest.mark.parametrize("loss", BOTH)
def test_huge_logits_stay_finite_and_nan_stays_nan(loss, compiled):
    huge = jnp.asarray([[3e38, -3e38], [-1e5, 1e5]])
    assert not jnp.isnan(compiled(loss)(huge, LABELS[:2])).any()
    assert jnp.isnan(compiled(loss)(jnp.asarray([[jnp.nan, 0.0]]), LABELS[:1])).all()


@pytest.mark.parametrize("case", golden_cases.CASES, ids=["masked", "baseline"])
def test_clipped_is_the_authors_loss(case):
    weights, scores, x, labels = golden_cases.inputs(case)
    for index, (name, weight) in enumerate(weights.items()):
        if case["masked"]:
            tau = case["thresholds"][index]
            mask = np.asarray(ternarize(jnp.asarray(scores[name]), -tau, tau))
            assert (mask != 0).mean() == case["kept_fraction"][index]
            weight = weight * mask
        x = x @ weight
        if index < len(weights) - 1:
            x = elu(x)
    logits = jnp.asarray(x)
    losses = clipped_cross_entropy(logits, jnp.asarray(labels, jnp.int32))
    assert float(losses.mean()) == pytest.approx(case["forward"]["loss"], rel=1e-5)
    np.testing.assert_allclose(jax.nn.softmax(logits)[:2], case["forward"]["probabilities"], rtol=1e-4, atol=1e-9)


def test_by_name():
    assert by_name("log_softmax") is cross_entropy
    assert by_name("clipped") is clipped_cross_entropy
    with pytest.raises(UserError, match="unknown loss 'mse'; known are log_softmax, clipped"):
        by_name("mse")


def test_squared_hinge_by_hand(compiled):
    logits, labels = jnp.asarray([[2.0, -0.5, 0.5], [0.0, 0.0, 0.0]]), jnp.asarray([0, 2])
    # The first: 0 for its class, (1 - 0.5)^2 and (1 + 0.5)^2 for the others, of three.
    np.testing.assert_allclose(compiled(squared_hinge)(logits, labels), [2.5 / 3, 1.0], rtol=1e-6)
    assert by_name("squared_hinge") is squared_hinge
