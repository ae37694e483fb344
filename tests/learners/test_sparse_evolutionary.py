"""SET against its program: what is dropped, how much grows and where; then counts, and a short training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm import learners
from ssm.errors import UserError
from ssm.learners import Step
from ssm.learners.regrowth import Connections
from ssm.learners.selection import kept_of
from ssm.learners.sparsity import layer_densities
from tests.support.literature import KEY, arrays, close, golden, inputs, objective, same, seed_alone, sgd, train
from tests.support.quick import quick

CASES = golden("set_original")["cases"]
LEARNER = learners.sparse_evolutionary(every=1)
MASKS = {path: jnp.asarray(case["mask_before"], jnp.float32) for path, case in CASES.items()}
WEIGHTS = arrays({path: case["weights"] for path, case in CASES.items()})
CORE = {path: np.asarray(case["mask_core_after_drop"]) for path, case in CASES.items()}


def changed(key, learner=LEARNER, step=1):
    """Return the published cases' layers after a change of connections."""
    momentum = {"trace": jax.tree.map(jnp.ones_like, WEIGHTS), "count": jnp.int32(7)}
    after = Step(WEIGHTS, WEIGHTS, {path: Connections(mask) for path, mask in MASKS.items()}, momentum)
    return learner.finish(key, jnp.int32(step), after, after)


@pytest.mark.parametrize("path", quick(CASES))
def test_what_the_published_program_drops(path, compiled):
    case, after = CASES[path], compiled(changed)(KEY)
    weights, mask = np.asarray(after.params[path]), np.asarray(after.state[path].mask)
    np.testing.assert_array_equal(weights != 0, CORE[path] == 1)  # new ones are 0
    np.testing.assert_array_equal(weights, CORE[path] * np.asarray(WEIGHTS[path]))
    for sign, name in ((1, "positive"), (-1, "negative")):
        active, dropped = case[name]
        own = np.sign(case["weights"]) == sign
        assert own.sum() == active and (own & (CORE[path] == 0)).sum() == dropped
    assert (mask >= CORE[path]).all()
    assert mask.sum() == MASKS[path].sum() == np.sum(case["mask_after_growth_of_one_seed"])


def test_growth_is_uniform_over_all_that_is_empty_the_just_dropped_included():
    grow = jax.jit(lambda key: {path: one.mask for path, one in changed(key).state.items()})
    drawn = [grow(key) for key in jax.random.split(KEY, 500)]
    for path, core in CORE.items():
        share = (MASKS[path].sum() - core.sum()) / (core == 0).sum()
        np.testing.assert_allclose(np.mean([one[path] for one in drawn], 0)[core == 0], share, atol=0.1)
        assert (core < np.asarray(MASKS[path])).sum() > CASES[path]["just_dropped_and_grown_again"] > 0


def test_signs_are_dropped_apart():
    """A layer whose negative weights are all smaller keeps 70 % of them, where dropping by |w| would take them all."""
    weights = {"a": jnp.concatenate([jnp.arange(11.0, 31.0), -jnp.arange(1.0, 11.0), jnp.zeros(10)])}
    state = {"a": Connections((weights["a"] != 0).astype(jnp.float32))}
    now = Step(weights, weights, state, ())
    found = LEARNER.finish(KEY, jnp.int32(1), now, now).params["a"]
    assert sorted(np.asarray(found[found > 0])) == list(range(18, 31))  # int(0.3 * 20) + 1 dropped
    assert sorted(np.asarray(found[found < 0])) == list(range(-10, -3))  # int(0.7 * 10) kept


def test_all_momentum_starts_again():
    after = changed(KEY)
    assert not any(leaf.any() for leaf in after.opt["trace"].values()) and after.opt["count"] == 7


@pytest.mark.parametrize("step", [0, 1, 3, 5])
def test_other_steps_change_no_connection(step):
    after = changed(KEY, learners.sparse_evolutionary(every=2), step)
    same({path: one.mask for path, one in after.state.items()}, MASKS)
    same(after.params, WEIGHTS)
    same(after.opt["trace"], MASKS)  # hidden ones have none


def test_between_changes_it_is_plain_training_of_the_kept():
    loss, optimizer = objective("mlp"), sgd(0.1, momentum=0.9, decay=5e-4)
    learner = learners.sparse_evolutionary(density=0.4, every=10)
    params, state = learner.init(KEY, inputs("mlp")[2])
    masks = {path: one.mask for path, one in state.items()}
    after = train(learner, loss, params, state, optimizer, 4)

    def masked_loss(kernels):
        return loss({path: kernel * masks[path] for path, kernel in kernels.items()})

    expected = train(learners.dense(), masked_loss, params, {path: () for path in params}, optimizer, 4)
    close(after.losses, expected.losses)
    close(after.params, expected.params)


def test_a_dense_output_is_left_alone():
    learner = learners.sparse_evolutionary(density=0.5, every=1, dense_output=True)
    params, state = learner.init(KEY, inputs("mlp")[2])
    assert state["dense2"].mask.all() and not state["dense1"].mask.all()
    now = Step(params, params, state, jax.tree.map(jnp.ones_like, params))
    after = learner.finish(KEY, jnp.int32(1), now, now)
    np.testing.assert_array_equal(after.params["dense2"], params["dense2"])
    assert after.state["dense2"].mask.all() and not after.opt["dense2"].any()
    assert after.state["dense1"].mask.sum() == state["dense1"].mask.sum()


def test_epsilon_is_the_published_start():
    kernels = {"a": jnp.ones((200, 300)), "b": jnp.ones((300, 10))}
    _, state = learners.sparse_evolutionary(epsilon=20).init(KEY, kernels)
    assert state["b"].mask.all()
    assert state["a"].mask.sum() == pytest.approx(20 * 500, rel=0.05)


@pytest.mark.slow
def test_in_training():
    result = seed_alone(learners.sparse_evolutionary(density=0.3, every=3))
    kernels = {f"{layer}/kernel": mask[0] for layer, mask in result.masks.items()}
    for path, share in layer_densities(kernels, 0.3).items():
        masks = result.masks[path.removesuffix("/kernel")]
        assert [int(mask.sum()) for mask in masks] == [kept_of(masks[0].size, share)] * 2


def test_options_out_of_range():
    for wrong in ({"density": 0.0}, {"drop": 1.1}, {"every": 0}, {"epsilon": -1.0}, {"distribution": "any"}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            learners.sparse_evolutionary(**wrong)
