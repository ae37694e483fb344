"""What a learner may do after the optimiser, to the outputs of layers, and in tests."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

from ssm import learners
from ssm.errors import UserError
from ssm.learners import by_layer, layerwise
from ssm.learners.base import changes_state, map_by_layer, may_be_transposed
from ssm.supermask.reparameterisation import noisy
from ssm.training.loop import train_members
from tests.support.tasks import LAYERS, masked, members, trainer_of

STEPS = 9  # of three epochs


def counting(finish):
    """Train the kernels, and count steps."""
    return layerwise(
        lambda key, kernel: (kernel, {"start": kernel, "steps": jnp.int32(0)}),
        lambda kernel, state, key: kernel,
        lambda kernel, state: jnp.ones_like(kernel),
        finish=finish,
        elementwise=True,
    )


def end_of(learner, optimizer=None):
    (end,) = train_members(trainer_of(masked(learner), optimizer), members(3), variables=True)
    return end.variables


def test_to_return_what_was_before_undoes_the_step():
    def finish(key, step, before, after):
        state = {path: {**own, "steps": step + 1} for path, own in after.state.items()}
        return before._replace(state=state)

    variables = end_of(counting(finish), optax.sgd(0.1, momentum=0.9))
    for path in LAYERS:
        own = variables["frozen"]["layers"][path]
        assert own["steps"] == STEPS
        np.testing.assert_array_equal(variables["params"]["net"][path.split("/")[0]]["kernel"], own["start"])
    assert np.any(variables["params"]["net"]["layers_0"]["bias"])  # biases are not the learner's


def test_params_may_be_bounded_after_the_optimiser():
    def finish(key, step, before, after):
        return after._replace(params={path: jnp.clip(leaf, -0.1, 0.1) for path, leaf in after.params.items()})

    variables = end_of(counting(finish), optax.sgd(1.0))
    for path in LAYERS:
        assert np.abs(variables["params"]["net"][path.split("/")[0]]["kernel"]).max() == np.float32(0.1)


def test_what_comes_after_sees_gradients_and_both_optimiser_states():
    def finish(key, step, before, after):
        for path in LAYERS:
            assert before.grads[path].shape == after.params[path].shape
        moved = jax.tree.map(lambda old, new, grad: new - (old - 0.1 * grad), before.params, after.params, before.grads)
        state = {path: {**own, "start": moved[path]} for path, own in after.state.items()}
        return after._replace(state=state)

    variables = end_of(counting(finish), optax.sgd(0.1))
    for path in LAYERS:
        np.testing.assert_allclose(variables["frozen"]["layers"][path]["start"], 0, atol=1e-7)


def test_a_learner_with_an_end_of_step_is_carried_and_not_transposed():
    learner = counting(lambda key, step, before, after: after)
    assert changes_state(learner) and not may_be_transposed(learner)
    assert not changes_state(learners.signed()) and may_be_transposed(learners.signed())


def test_the_optimisers_state_is_mapped_by_layer():
    params = {"a": jnp.ones(3), "b": jnp.ones(2)}
    state = optax.adam(0.1).init(params)
    found = map_by_layer(lambda leaf, mask: leaf + mask, state, {"a": jnp.ones(3), "b": jnp.zeros(2)})
    assert found[0].mu["a"].tolist() == [1, 1, 1] and found[0].nu["b"].tolist() == [0, 0]
    assert found[0].count == 0


def drawing(test_draws=4):
    """Random weights of a mean that is trained: drawn in a test, outputs drawn in training."""

    def draw(params, state, key):
        return {path: leaf + jax.random.normal(key, leaf.shape) for path, leaf in params.items()}

    return layerwise(
        lambda key, kernel: (kernel, ()),
        lambda kernel, state, key: kernel,
        lambda kernel, state: jnp.ones_like(kernel),
        draw=draw,
        draws=test_draws,
        variances=lambda params, state: {path: jnp.ones_like(leaf) for path, leaf in params.items()},
    )


@pytest.mark.slow
def test_a_test_is_the_mean_over_draws():
    losses = {}
    for draws in (1, 2, 50):
        (end,) = train_members(trainer_of(masked(drawing(draws)), optax.sgd(0.0)), members(3))
        losses[draws] = [row["test_loss"] for row in end.history]
        assert len(set(losses[draws])) == 1  # the same draws in every epoch
    assert losses[1] != losses[2] and np.isfinite(losses[50]).all()
    (plain,) = train_members(trainer_of(masked(drawing()._replace(draw=None)), optax.sgd(0.0)), members(3))
    assert plain.history[0]["test_loss"] < losses[50][0]  # the means are better than draws that far around them


def test_outputs_are_drawn_around_those_of_the_means():
    kernel, x = jnp.full((3, 2), 0.5), jnp.asarray([[1.0, 2.0, -1.0]])
    layer = nn.Dense(2, use_bias=False)
    apply = layer.apply

    def drawn(key):
        with noisy({"kernel": jnp.full((3, 2), 0.04)}, key):
            return nn.Sequential([layer]).apply({"params": {"layers_0": {"kernel": kernel}}}, x)

    with pytest.raises(UserError, match="draws the outputs of nn"):
        drawn(jax.random.key(0))  # there the kernel's path is layers_0/kernel

    def outputs(key):
        with noisy({"kernel": jnp.full((3, 2), 0.04)}, key):
            return apply({"params": {"kernel": kernel}}, x)[0]

    found = jax.vmap(outputs)(jax.random.split(jax.random.key(0), 4000))
    np.testing.assert_allclose(found.mean(0), 1.0, atol=0.05)
    np.testing.assert_allclose(found.std(0), np.sqrt(0.04 * 6 + 1e-3), rtol=0.05)


def test_each_layer_finishes_and_draws_by_its_own_learner():
    def finish(key, step, before, after):
        return before

    learner = by_layer({"layers_0": counting(finish), "*": drawing()})
    kernels = {path: jnp.ones(shape) for path, shape in LAYERS.items()}
    params, state = learner.init(jax.random.key(0), kernels)
    assert set(learner.variances(params, state)) == {"layers_2/kernel"}
    found = learner.draw(params, state, jax.random.key(1))
    assert (found["layers_0/kernel"] == 1).all() and not (found["layers_2/kernel"] == 1).any()
    assert learner.draws == 4
    before = learners.Step(kernels, kernels, state, (kernels,))
    after = learners.Step(
        kernels, jax.tree.map(jnp.zeros_like, kernels), state, (jax.tree.map(jnp.zeros_like, kernels),)
    )
    done = learner.finish(jax.random.key(0), 0, before, after)
    assert done.params["layers_0/kernel"].all() and not done.params["layers_2/kernel"].any()
    assert done.opt[0]["layers_0/kernel"].all() and not done.opt[0]["layers_2/kernel"].any()


@pytest.mark.parametrize(("field", "arguments"), [("finish", 4), ("variances", 2), ("draw", 3)])
def test_functions_of_other_arguments_are_refused(field, arguments):
    wrong = learners.signed()._replace(**{field: lambda one: one})
    with pytest.raises(UserError, match=f"the learner's {field} must take {arguments} arguments"):
        masked(wrong)
