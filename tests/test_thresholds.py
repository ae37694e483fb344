"""Threshold rules: literal values, the density they promise, traced parameters, and what the errors say."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssm.errors import UserError
from ssm.ternary import binarize, ternarize
from ssm.thresholds import absolute, fraction_of_max, parse, quantile

DTYPES = [jnp.float32, jnp.bfloat16, jnp.float16]
SCORES = jnp.asarray([[0.5, -0.8, 0.1, 0.3], [-0.2, 0.7, -0.4, 0.6]])  # sorted: -.8 -.4 -.2 .1 .3 .5 .6 .7


def arrays(elements, *, unique=False):
    # Few sizes, because every new one compiles.
    sizes = st.sampled_from([1, 2, 7, 50])
    lists = sizes.flatmap(lambda n: st.lists(elements, min_size=n, max_size=n, unique=unique))
    return lists.map(lambda values: np.asarray(values, np.float32))


distinct_scores = arrays(st.integers(-128, 128), unique=True).map(lambda values: values / 256)  # exact in bfloat16
any_scores = arrays(st.floats(-1, 1, width=32))
densities = st.floats(0.001, 1.0)
dtypes = st.sampled_from(DTYPES)
fast = settings(max_examples=40, deadline=None)


def literal(pair):
    return [float(threshold) for threshold in pair]


@pytest.mark.parametrize(
    "rule, expected",
    [
        (absolute(), [-0.01, 0.01]),
        (absolute(0.25), [-0.25, 0.25]),
        (absolute(0), [0.0, 0.0]),
        (fraction_of_max(0.5), [-0.4, 0.4]),
        (fraction_of_max(1.0), [-0.8, 0.8]),
        (quantile(0.5), [-0.4, 0.6]),
        (quantile(1.0), [0.1, 0.3]),
        (quantile(0.375), [-0.8, 0.6]),  # an odd number kept: one more at the upper end
        (quantile(0.01), [-np.inf, 0.7]),  # never none
        (quantile(0.5, one_sided=True), [-np.inf, 0.1]),
        (quantile(1.0, one_sided=True), [-np.inf, -np.inf]),
    ],
)
def test_literal_thresholds(rule, expected, compiled):
    np.testing.assert_allclose(literal(compiled(rule)(SCORES)), expected, rtol=1e-6)


@pytest.mark.parametrize("rule", [absolute(), fraction_of_max(0.3), quantile(0.3), quantile(0.3, one_sided=True)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_of_the_scores_dtype(rule, dtype):
    pair = rule(SCORES.astype(dtype))
    chex.assert_shape(pair, ())
    chex.assert_type(pair, dtype)


@fast
@given(distinct_scores, densities, dtypes)
def test_density_is_right_to_within_one_element(values, density, dtype):
    scores = jnp.asarray(values, dtype)
    mask = np.asarray(ternarize(scores, *quantile(density)(scores)), np.float32)
    assert abs(np.count_nonzero(mask) - density * mask.size) < 1
    assert 0 <= (mask == 1).sum() - (mask == -1).sum() <= 1
    _, upper = quantile(density, one_sided=True)(scores)
    kept = np.count_nonzero(np.asarray(binarize(scores, upper), np.float32))
    assert abs(kept - density * mask.size) < 1


@fast
@given(distinct_scores, densities, densities)
def test_more_density_never_hides_a_kept_weight(values, one, other):
    scores = jnp.asarray(values)
    sparse = np.asarray(ternarize(scores, *quantile(min(one, other))(scores)))
    dense = np.asarray(ternarize(scores, *quantile(max(one, other))(scores)))
    np.testing.assert_array_equal(dense[sparse != 0], sparse[sparse != 0])


@fast
@given(st.floats(0, 1), st.floats(0, 1), any_scores)
def test_a_higher_fraction_or_tau_never_keeps_more(one, other, values):
    scores = jnp.asarray(values)
    for rule in (absolute, fraction_of_max):
        few, many = (np.asarray(ternarize(scores, *rule(f(one, other))(scores))) for f in (max, min))
        assert np.all((few == 0) | (few == many))


@fast
@given(any_scores, densities)
def test_lower_never_exceeds_upper_even_with_ties(values, density):
    lower, upper = quantile(density)(jnp.asarray(np.concatenate([values, values])))
    assert lower <= upper


@pytest.mark.parametrize("rule", [absolute(0.03), fraction_of_max(0.3), quantile(0.3), quantile(0.3, one_sided=True)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_jit_equals_eager(rule, dtype):
    scores = jax.random.normal(jax.random.key(0), (20, 11), dtype)
    np.testing.assert_array_equal(literal(jax.jit(rule)(scores)), literal(rule(scores)))


@pytest.mark.parametrize("rule", [absolute, fraction_of_max, quantile])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_traced_parameters_equal_concrete_ones(rule, dtype):
    values = [0.125, 0.25, 0.5]
    scores = jax.random.normal(jax.random.key(1), (20, 10), dtype)
    together = jax.jit(jax.vmap(lambda value: rule(value)(scores)))(jnp.asarray(values))
    expected = [literal(rule(value)(scores)) for value in values]
    np.testing.assert_array_equal(np.asarray(together, np.float32).T, np.asarray(expected, np.float32))


def test_new_values_do_not_compile_again():
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def thresholds(density):
        return quantile(density)(SCORES)

    for density in (0.1, 0.2, 0.9):
        thresholds(density)


def test_vmap_over_seeds():
    scores = jax.random.normal(jax.random.key(2), (3, 12, 5))
    for rule in (fraction_of_max(0.2), quantile(0.2)):
        lower, upper = jax.vmap(rule)(scores)
        for seed in range(3):
            assert literal(rule(scores[seed])) == [float(lower[seed]), float(upper[seed])]


@pytest.mark.parametrize(
    "text, rule",
    [
        ("0.02", absolute(0.02)),
        ("absolute:0.01", absolute()),
        ("fraction_of_max:0.4", fraction_of_max(0.4)),
        ("quantile:0.25", quantile(0.25)),
        (" absolute: 1e-3", absolute(0.001)),
    ],
)
def test_parse_reads_what_rules_print(text, rule):
    assert parse(text) == rule
    assert parse(str(rule)) == rule
    assert hash(parse(text)) == hash(rule)


def test_parse_hands_one_sided_to_quantile_only():
    assert parse("quantile:0.5", one_sided=True) == quantile(0.5, one_sided=True)
    assert parse("0.5", one_sided=True) == absolute(0.5)


@pytest.mark.parametrize("text", ["", "top:0.1", "quantile", "quantile:", "quantile:half", "absolute:0.1:2", ":1"])
def test_parse_says_its_forms(text):
    with pytest.raises(UserError, match=r"absolute:0.01 \(or just 0.01\), fraction_of_max:0.4 or quantile:0.25"):
        parse(text)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: absolute(-0.1), "threshold tau must be at least 0 and finite, got -0.1"),
        (lambda: absolute(float("nan")), "threshold tau must be at least 0 and finite, got nan"),
        (lambda: fraction_of_max(1.5), r"threshold p must be in \[0, 1\], got 1.5"),
        (lambda: quantile(0), r"threshold density must be in \(0, 1\], got 0"),
        (lambda: parse("quantile:25"), r"threshold density must be in \(0, 1\], got 25.0"),
    ],
)
def test_values_out_of_range(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_nan_scores_turn_fraction_of_max_nan():
    assert all(np.isnan(literal(fraction_of_max(0.5)(jnp.asarray([1.0, jnp.nan])))))
