"""The signed learner by hand; its folded form is the same, bit for bit."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm import initializers, learners, thresholds
from ssm.learners.signed import Folded, Frozen
from ssm.models import FCN
from ssm.supermask import Supermask
from tests.support.quick import quick

X = jnp.ones((2, 12))
CONSTANT = initializers.signed_constant(initializers.he())
SCORES = jnp.array([-0.5, -0.01, 0.0, 0.01, 0.5])
KERNEL = jnp.array([1.0, -2.0, 3.0, -4.0, 5.0])
STATE = {"a": Frozen(KERNEL, jnp.float32(-0.01), jnp.float32(0.01))}
SYMMETRIC = [thresholds.absolute(), thresholds.absolute(0.1), thresholds.fraction_of_max(0.4)]


def start(**options):
    net = Supermask(FCN(hidden=(6,), classes=4), learner=learners.signed(**options), kernel_init=CONSTANT)
    return net, net.init(jax.random.key(0), X)


def both(**options):
    """Return net and variables of the plain form and of the folded one, drawn from the same key."""
    return start(**options), start(**options, folded=True)


def unfolded(variables):
    """Return the scores of a folded net as the plain one has them."""
    (scores,) = variables["params"].values()
    signs = {path.split("/")[0]: {"kernel": state.signs} for path, state in variables["frozen"]["layers"].items()}
    return {"net": jax.tree.map(lambda score, sign: score * sign, scores, signs)}


def test_literal_masks_and_weights(compiled):
    learner = learners.signed()
    np.testing.assert_array_equal(compiled(learner.masks)({"a": SCORES}, STATE)["a"], [-1, -1, 0, 1, 1])
    np.testing.assert_array_equal(compiled(learner.weights)({"a": SCORES}, STATE, None)["a"], [-1, 2, 0, -4, 5])


def test_gradients_to_the_scores(compiled):
    gradient = jax.grad(lambda scores: learners.signed().weights({"a": scores}, STATE, None)["a"].sum())
    np.testing.assert_array_equal(compiled(gradient)(SCORES), KERNEL)


def test_scores_and_thresholds_are_the_factorys():
    kernels = {"a": jnp.ones((20, 30)), "b": jnp.ones((30, 5))}
    learner = learners.signed(scores=initializers.uniform(initializers.he()), threshold=thresholds.quantile(0.3))
    params, state = learner.init(jax.random.key(0), kernels)
    for path, kernel in kernels.items():
        assert np.abs(params[path]).max() == pytest.approx(np.sqrt(6 / len(kernel)), rel=0.02)
        chex.assert_trees_all_equal(state[path], Frozen(kernel, *thresholds.quantile(0.3)(params[path])))
    assert not np.array_equal(params["a"][:5, :5], params["b"][:5, :5])


def test_it_acts_on_each_weight_by_itself_and_has_masks():
    learner = learners.signed()
    assert learner.elementwise and learner.has_masks and learner.update is None and learner.penalty is None


@pytest.mark.parametrize("rule", quick(SYMMETRIC))
def test_folded_has_the_same_masks_and_weights(rule):
    (plain, variables), (folded, other) = both(threshold=rule)
    chex.assert_trees_all_equal(plain.masks(variables), folded.masks(other))
    chex.assert_trees_all_equal(plain.weights(variables), folded.weights(other))


@pytest.mark.parametrize("rule", SYMMETRIC)
def test_folded_there_and_back_is_exact(rule):
    (_, variables), (_, other) = both(threshold=rule)
    chex.assert_trees_all_equal(unfolded(other), variables["params"])


def test_folded_holds_one_constant_a_layer_and_its_signs():
    (_, variables), (_, other) = both()
    for path, state in other["frozen"]["layers"].items():
        plain = variables["frozen"]["layers"][path]
        assert isinstance(state, Folded) and state.signs.dtype == jnp.int8
        chex.assert_shape(state.constant, ())
        chex.assert_trees_all_equal(state.kernel, plain.kernel)
        stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf, leaf]), state)
        chex.assert_trees_all_equal(stacked.kernel, jax.vmap(lambda one: one.kernel)(stacked))
        chex.assert_trees_all_equal((state.lower, state.upper), (plain.lower, plain.upper))


def test_folded_gradients_are_flipped_as_the_scores_are():
    (plain, variables), (folded, other) = both()
    target = jax.random.normal(jax.random.key(1), (2, 4))

    def gradient(net, variables):
        def loss(params):
            return jnp.mean((net.apply({**variables, "params": params}, X) - target) ** 2)

        return jax.grad(loss)(variables["params"])

    seen = unfolded({**other, "params": gradient(folded, other)})
    chex.assert_trees_all_equal(seen, gradient(plain, variables))
