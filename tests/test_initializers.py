"""Initialisers: fans and scales by hand, moments with fixed keys, dtypes, and what the errors say."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm import initializers
from ssm.errors import UserError
from ssm.initializers import (
    by_name,
    elu,
    elus,
    fans,
    he,
    normal,
    paper_formula,
    signed_constant,
    uniform,
    xavier,
)

DISTRIBUTIONS = list(initializers.DISTRIBUTIONS.values())
DTYPES = [jnp.float32, jnp.bfloat16, jnp.float16]


@pytest.mark.parametrize(
    "shape, expected",
    [
        ((784, 300), (784, 300)),
        ((3, 3, 64, 128), (576, 1152)),
        ((1, 1, 16, 32), (16, 32)),
        ((5, 2, 3), (10, 15)),
    ],
)
def test_fans(shape, expected):
    assert fans(shape) == expected


@pytest.mark.parametrize("shape", [(), (300,), (0, 10), (3, 3, 8, 0)])
def test_fans_refuse_shapes_without_in_and_out(shape):
    with pytest.raises(UserError, match="at least the axes"):
        fans(shape)


@pytest.mark.parametrize(
    "scale, variance",
    [
        (he(), 2 / 50),
        (he(2.0), 8 / 50),
        (xavier(), 2 / 250),
        (elu(), 1.5 / 50),
        (elus(), 6 / 50),
        (elus(initializers.ELUS_CONV), 3 / 50),
        (paper_formula(0.5), 3 / 50),
        (paper_formula(0.5, fan="out"), 3 / 200),
        (paper_formula(0.0), 1.5 / 50),
    ],
)
def test_scales_at_fan_in_50_and_fan_out_200(scale, variance):
    assert scale(50, 200) ** 2 == pytest.approx(variance, rel=1e-12)


def test_relations_between_the_scales():
    assert elu()(50, 200) == pytest.approx(he()(50, 200) * math.sqrt(0.75))
    assert paper_formula(0.5)(50, 200) == pytest.approx(elus(initializers.ELUS_CONV)(50, 200))


def test_signed_constant_is_one_constant_with_either_sign():
    weights = np.asarray(signed_constant(elus())(jax.random.key(0), (600, 400)))
    assert set(np.unique(weights)) == {np.float32(-0.1), np.float32(0.1)}  # sqrt(6 / 600)
    assert abs((weights > 0).mean() - 0.5) < 4 * 0.5 / math.sqrt(weights.size)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_mean_standard_deviation_and_dtype(distribution, dtype):
    drawn = distribution(he())(jax.random.key(1), (500, 300), dtype)
    assert drawn.shape == (500, 300) and drawn.dtype == dtype
    values = np.asarray(drawn, np.float64)
    c = math.sqrt(2 / 500)
    assert abs(values.mean()) < 4 * c / math.sqrt(values.size)
    assert values.std() == pytest.approx(c, rel=0.01)


def test_xavier_uniform_fills_its_interval():
    scores = np.asarray(uniform(xavier())(jax.random.key(2), (784, 300)))
    bound = math.sqrt(6 / 1084)
    assert np.abs(scores).max() == pytest.approx(bound, rel=1e-4)
    assert np.abs(scores).max() <= np.float32(bound)
    reference = jax.nn.initializers.xavier_uniform()(jax.random.key(2), (784, 300))
    np.testing.assert_allclose(scores, reference, rtol=1e-5, atol=1e-8)


def test_share_hidden_at_first_is_the_papers():
    # The paper says 6.3 % for the FCN, which is that of ELUS-uniform scores; Xavier-uniform ones hide 12.8 %.
    for scale, expected in ((elus(), 0.063), (xavier(), 0.128)):
        layers = [(784, 300), (300, 100), (100, 10)]
        keys = jax.random.split(jax.random.key(3), 3)
        hidden = [np.abs(uniform(scale)(key, shape)) < 0.01 for key, shape in zip(keys, layers, strict=True)]
        assert np.concatenate([layer.ravel() for layer in hidden]).mean() == pytest.approx(expected, abs=0.002)


@pytest.mark.parametrize("distribution", [uniform, normal])
def test_narrow_dtypes_are_the_float32_draw_rounded(distribution):
    init = distribution(he())
    key = jax.random.key(4)
    np.testing.assert_array_equal(init(key, (30, 20), jnp.bfloat16), init(key, (30, 20)).astype(jnp.bfloat16))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_vmap_over_keys_equals_one_by_one(distribution):
    init = jax.jit(distribution(he()), static_argnums=1)
    keys = jax.random.split(jax.random.key(5), 3)
    together = jax.vmap(lambda key: init(key, (20, 10)))(keys)
    np.testing.assert_array_equal(together, jnp.stack([init(key, (20, 10)) for key in keys]))


def test_factor_may_be_traced():
    draw = jax.jit(lambda factor: signed_constant(he(factor))(jax.random.key(6), (8, 4)))
    np.testing.assert_allclose(draw(2.0), 2 * draw(1.0), rtol=1e-6)


def test_by_name_equals_the_functions():
    key = jax.random.key(7)
    np.testing.assert_array_equal(by_name("he")(key, (9, 4)), signed_constant(he())(key, (9, 4)))
    np.testing.assert_array_equal(
        by_name("elus", "uniform", factor=initializers.ELUS_CONV)(key, (9, 4)),
        uniform(elus(initializers.ELUS_CONV))(key, (9, 4)),
    )
    np.testing.assert_array_equal(
        by_name("paper_formula", "normal", p0=0.1, fan="out")(key, (9, 4)),
        normal(paper_formula(0.1, fan="out"))(key, (9, 4)),
    )


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: by_name("lecun"),
            "unknown initialisation 'lecun'; known are he, xavier, elu, elus, paper_formula",
        ),
        (
            lambda: by_name("he", "cauchy"),
            "unknown distribution 'cauchy'; known are signed_constant, uniform, normal",
        ),
        (lambda: by_name("xavier", factor=2.0), "'xavier': .*'factor'; its options are: none"),
        (lambda: by_name("paper_formula"), "'paper_formula': .*'p0'; its options are: p0, fan"),
        (lambda: he(0.0), "factor must be above 0, got 0.0"),
        (lambda: elus(math.nan), "factor must be above 0, got nan"),
        (lambda: paper_formula(1.0), r"p0 must be in \[0, 1\), got 1.0"),
        (lambda: paper_formula(0.5, fan="mean"), "fan must be 'in' or 'out', got 'mean'"),
        (lambda: uniform(he())(jax.random.key(0), (3, 3), jnp.int32), "got dtype int32; use float32"),
    ],
)
def test_errors(call, message):
    with pytest.raises(UserError, match=message):
        call()
