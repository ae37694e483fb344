import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.ternary import binarize, ternarize

SCORES = [-0.02, -0.01, -0.0099, -0.0, 0.0, 0.0099, 0.01, 0.02]
DTYPES = [jnp.float32, jnp.bfloat16, jnp.float16]


def test_literal_scores_give_literal_masks(compiled):
    np.testing.assert_array_equal(compiled(ternarize)(jnp.array(SCORES), -0.01, 0.01), [-1, -1, 0, 0, 0, 0, 1, 1])
    np.testing.assert_array_equal(compiled(binarize)(jnp.array(SCORES), 0.01), [0, 0, 0, 0, 0, 0, 0, 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_and_shape_are_kept(dtype):
    scores = jnp.zeros((2, 0, 3), dtype)
    for mask in (ternarize(scores, -0.01, 0.01), binarize(scores, 0.01)):
        chex.assert_trees_all_equal_shapes_and_dtypes(mask, scores)


def test_infinite_scores_are_signs_and_nan_stays_nan(compiled):
    scores = jnp.array([-jnp.inf, jnp.inf, jnp.nan])
    np.testing.assert_array_equal(compiled(ternarize)(scores, -0.01, 0.01), [-1, 1, np.nan])
    np.testing.assert_array_equal(compiled(binarize)(scores, 0.01), [0, 1, np.nan])


def test_equal_thresholds_give_plus_one():
    np.testing.assert_array_equal(ternarize(jnp.array([-1.0, 0.0, 1.0]), 0.0, 0.0), [-1, 1, 1])


def test_thresholds_broadcast_and_are_traced():
    scores = jnp.array([[0.5, -0.5], [0.5, -0.5]])
    upper = jnp.array([[0.4], [0.6]])
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def mask(scores, upper):
        return ternarize(scores, -upper, upper)

    np.testing.assert_array_equal(mask(scores, upper), [[1, -1], [0, 0]])
    np.testing.assert_array_equal(mask(scores, upper[::-1]), [[0, 0], [1, -1]])
    np.testing.assert_array_equal(
        jax.vmap(ternarize, (None, 0, 0))(jnp.array([0.5]), -upper[:, 0], upper[:, 0]), [[1], [0]]
    )


def test_gradient_is_the_identity_to_scores_and_zero_to_thresholds(compiled):
    weights = jnp.arange(8.0) + 1
    scores = jnp.array(SCORES)
    gradient = jax.grad(lambda s, low, up: jnp.sum(weights * ternarize(s, low, up)), argnums=(0, 1, 2))
    to_scores, to_lower, to_upper = compiled(gradient)(scores, -0.01, 0.01)
    np.testing.assert_array_equal(to_scores, weights)
    assert to_lower == 0 and to_upper == 0
    gradient = jax.grad(lambda s, up: jnp.sum(weights * binarize(s, up)), argnums=(0, 1))
    to_scores, to_upper = compiled(gradient)(scores, 0.01)
    np.testing.assert_array_equal(to_scores, weights)
    assert to_upper == 0


floats = hnp.arrays(
    np.float32,
    hnp.array_shapes(max_dims=3, max_side=4),
    elements=st.floats(-2, 2, width=32, allow_subnormal=False),
)


@settings(max_examples=60, deadline=None)
@given(scores=floats, tau=st.floats(0.0009765625, 1.0, width=32))
def test_masks_are_ternary_and_odd(scores, tau):
    mask = np.asarray(ternarize(scores, -tau, tau))
    assert set(np.unique(mask)) <= {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(np.asarray(ternarize(-scores, -tau, tau)), -mask)
    np.testing.assert_array_equal(mask != 0, np.abs(scores) >= np.float32(tau))


@settings(max_examples=40, deadline=None)
@given(scores=floats, lower=st.floats(-1, 0, width=32), upper=st.floats(0.0078125, 1, width=32))
def test_a_mask_never_falls_as_its_score_grows(scores, lower, upper):
    flat = np.sort(scores.ravel())
    assert np.all(np.diff(np.asarray(ternarize(flat, lower, upper))) >= 0)
    assert np.all(np.diff(np.asarray(binarize(flat, upper))) >= 0)


@pytest.mark.parametrize("mask", [lambda s: ternarize(s, -0.01, 0.01), lambda s: binarize(s, 0.01)])
def test_forward_mode_is_straight_through_too(mask, compiled):
    scores, tangent = jnp.array(SCORES), jnp.arange(8.0)
    _, found = compiled(lambda s: jax.jvp(mask, (s,), (tangent,)))(scores)
    np.testing.assert_array_equal(found, tangent)
    # f(m) = sum m^3 has the hessian 6 m at m = mask(s), as dm/ds is the identity.
    hessian = compiled(jax.hessian(lambda s: jnp.sum(mask(s) ** 3)))(scores)
    np.testing.assert_array_equal(hessian, jnp.diag(6 * mask(scores)))
