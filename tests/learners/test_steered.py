import jax
import jax.numpy as jnp
import pytest

from ssm.errors import UserError
from ssm.learners import steered
from ssm.learners.base import SCORES
from ssm.thresholds import absolute, quantile
from tests.support.literature import sgd, train
from tests.support.quick import quick


def gathered(key, shape, dtype):
    """Scores close to each other, as late in training: a small step of the threshold hides many of them."""
    return 0.02 + 0.0004 * jax.random.normal(key, shape, dtype)


def kept(learner, after):
    return sum(int(jnp.abs(mask).sum()) for mask in learner.masks(after.params, after.state).values())


@pytest.mark.parametrize("scores", [SCORES, gathered])
@pytest.mark.parametrize("density", quick([0.3, 0.05]))
def test_the_threshold_moves_until_the_share_is_left(density, scores):
    kernels = {"a": jax.random.normal(jax.random.key(1), (80, 50)), "b": jax.random.normal(jax.random.key(2), (50, 10))}
    learner = steered(density=density, steps=300, scores=scores)
    params, state = learner.init(jax.random.key(0), kernels)
    after = train(learner, lambda weights: 0 * weights["a"].sum(), params, state, sgd(0.0), 600)
    assert kept(learner, after) / 4500 == pytest.approx(density, rel=0.02)
    thresholds = {float(one.upper) for one in after.state.values()}
    assert len(thresholds) == 1  # one for the whole net
    assert all(float(one.lower) == -float(one.upper) for one in after.state.values())


@pytest.mark.parametrize(("rule", "scores"), quick([(absolute(0.01), gathered), (quantile(0.25), SCORES)]))
@pytest.mark.parametrize("density", [1.0, 0.03])
def test_from_a_step_on_the_share_is_counted_out(density, rule, scores):
    kernels = {"a": jax.random.normal(jax.random.key(1), (80, 50)), "b": jax.random.normal(jax.random.key(2), (50, 10))}
    learner = steered(density=density, steps=10, counted=20, scores=scores, threshold=rule)
    params, state = learner.init(jax.random.key(0), kernels)
    left = {}
    for steps in (20, 21, 23):
        after = train(learner, lambda weights: 0 * weights["a"].sum(), params, state, sgd(0.0), steps)
        left[steps] = kept(learner, after)
    assert left[21] == left[23] == 4500 * density
    assert left[20] != left[21] or density == 1


def test_the_share_may_start_below_1():
    kernels = {"a": jax.random.normal(jax.random.key(1), (80, 50)), "b": jax.random.normal(jax.random.key(2), (50, 10))}
    learner = steered(start=0.2, density=0.05, steps=400)
    params, state = learner.init(jax.random.key(0), kernels)
    left = {}
    for steps in (100, 200, 500):
        after = train(learner, lambda weights: 0 * weights["a"].sum(), params, state, sgd(0.0), steps)
        left[steps] = kept(learner, after) / 4500
    assert [left[steps] for steps in (100, 200, 500)] == pytest.approx([0.2 * 0.25**0.25, 0.1, 0.05], rel=0.05)


def test_more_scores_of_0_than_may_be_hidden_leave_the_threshold_as_it_is():
    def zeros(key, shape, dtype):
        return gathered(key, shape, dtype) * (jax.random.uniform(key, shape) < 0.5)

    kernels = {"a": jax.random.normal(jax.random.key(1), (80, 50))}
    learner = steered(density=0.9, steps=10, counted=10, scores=zeros)
    params, state = learner.init(jax.random.key(0), kernels)
    after = train(learner, lambda weights: 0 * weights["a"].sum(), params, state, sgd(0.0), 13)
    assert int(jnp.abs(learner.masks(after.params, after.state)["a"]).sum()) == int((params["a"] != 0).sum())


@pytest.mark.parametrize("options", [{"density": 0.0}, {"start": 0.0}, {"start": 1.5}])
def test_shares_out_of_range_are_refused(options):
    with pytest.raises(UserError, match=next(iter(options))):
        steered(**options)


def test_counting_does_not_begin_before_the_share_is_reached():
    with pytest.raises(UserError, match="counted must be 0, or a step from steps=100 on"):
        steered(steps=100, counted=50)
