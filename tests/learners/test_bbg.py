import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.learners import bbg
from tests.support.literature import KEY
from tests.support.short import check_run

LATENT = {"a": jnp.asarray([[3.0, 1.0], [2.0, 6.0]])}  # of mean 3
STATE = {"a": ()}


def test_signs_of_what_is_above_and_below_the_mean():
    np.testing.assert_array_equal(bbg().masks(LATENT, STATE)["a"], [[1, -1], [-1, 1]])


@pytest.mark.parametrize(("scaled", "size"), [(True, 1.5), (False, 1.0)])
def test_the_scale_is_the_mean_distance(scaled, size):
    found = bbg(scaled=scaled).weights(LATENT, STATE, None)["a"]
    np.testing.assert_array_equal(found, size * np.asarray([[1, -1], [-1, 1]]))


def test_weights_are_balanced_whatever_the_mean():
    latent = {"a": 5 + jax.random.normal(KEY, (200, 100))}
    assert abs(float(bbg().masks(latent, STATE)["a"].mean())) < 0.01


def test_the_gradient_leaves_the_mean_where_it_is():
    given = jnp.asarray([[1.0, 2.0], [3.0, 6.0]])
    found = jax.grad(lambda latent: jnp.sum(given * bbg().weights(latent, STATE, None)["a"]))(LATENT)["a"]
    np.testing.assert_array_equal(found, given - 3)


@pytest.mark.slow
def test_a_short_run():
    result = check_run(bbg())
    for mask in result.masks.values():
        assert set(np.unique(mask)) == {-1, 1}
