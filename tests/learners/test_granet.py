"""GraNet against its program, step by step; its schedules; a short training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm import learners
from ssm.errors import UserError
from ssm.learners import Step
from ssm.learners.granet import LAST_SHARE
from ssm.learners.regrowth import Connections, pruned, survivors
from ssm.supermask import split
from tests.support.literature import (
    KEY,
    arrays,
    close,
    golden,
    held,
    inputs,
    objective,
    same,
    seed_alone,
    sgd,
    train,
)
from tests.support.quick import quick

GOLDEN = golden("granet")
NESTEROV = sgd(0.1, momentum=0.9, nesterov=True, decay=5e-4)


def granet(case):
    steps = case["steps_per_epoch"] * case["epochs"]
    until = case.get("final_prune_epoch", 0) / case["epochs"]
    shares = {"density": case.get("final_density", 0.1), "start_density": case.get("init_density", 0.5)}
    return learners.granet(**shares, until=until, steps=steps, every=case["update_frequency"])


def velocity(opt, params):
    """Return minus the velocity over the learning rate, as PyTorch has it."""
    (trace,) = held(opt, params)
    return {path: -leaf / 0.1 for path, leaf in trace.items()}


@pytest.mark.parametrize("name", quick(GOLDEN["cases"]))
def test_steps_of_the_published_program(name):
    case = GOLDEN["cases"][name]
    learner, loss, kernels, opt = granet(case), objective(case["net"]), inputs(case["net"])[2], None
    state = {path: Connections(mask) for path, mask in arrays(case["mask_at_start"]).items()}
    params = {path: kernel * state[path].mask for path, kernel in kernels.items()}
    close(params, case["weights_at_start"])
    for number, step in enumerate(case["steps"]):
        after = train(learner, loss, params, state, NESTEROV, 1, first=number, opt=opt)
        close(after.losses[0], step["loss"])
        masks = learner.masks(after.params, after.state)
        assert {path: int(mask.sum()) for path, mask in masks.items()} == step["active_after"]
        if "mask" in step:
            close(after.gradients[0], step["dense_gradient"])
            same(masks, step["mask"])
            close(after.params, step["weights"])
        if "momentum" in step:
            close(velocity(after.opt, masks), step["momentum"])
        params, state, opt = after.params, after.state, after.opt


def test_global_prune_of_the_published_program():
    """The weights after an update, and those that the layer step dropped for good: a step before it has them all."""
    case = GOLDEN["cases"]["mlp_granet_0.5_to_0.1"]
    never = learners.granet(density=0.1, every=1000)
    loss, kernels = objective("mlp"), inputs("mlp")[2]
    state = {path: Connections(mask) for path, mask in arrays(case["mask_at_start"]).items()}
    params = {path: kernel * state[path].mask for path, kernel in kernels.items()}
    after = train(never, loss, params, state, NESTEROV, 2)
    expected = case["steps"][1]
    number = int(136 * (0.1 + 0.4 * (1 - 1 / 6) ** 3))
    found = pruned(Step({}, after.params, after.state, after.opt), number)
    same({path: one.mask for path, one in found.state.items()}, expected["mask_after_global_prune"])
    assert sum(expected["active_after_global_prune"].values()) == number - 1  # strictly above


@pytest.mark.parametrize("row", quick(GOLDEN["layer_drop_table"]["rows"]), ids=str)
def test_layer_drop(row):
    active, inactive, share, left = row
    mask = jnp.concatenate([jnp.ones(active), jnp.zeros(inactive)])
    weights = mask * jnp.arange(1.0, active + inactive + 1)
    found = survivors(weights, mask, share)
    np.testing.assert_array_equal(found, (jnp.arange(active + inactive) >= active - left) * mask)


def test_equal_weights_are_dropped_together():
    weights = jnp.array([3.0, -1.0, 1.0, 1.0, 2.0, 0.0])
    np.testing.assert_array_equal(survivors(weights, (weights != 0).astype(jnp.float32), 0.2), [1, 0, 0, 0, 1, 0])
    found = pruned(Step({}, {"a": weights}, {"a": None}, ()), 3)
    np.testing.assert_array_equal(found.state["a"].mask, [1, 0, 0, 0, 1, 0])


def test_regrow_share():
    """Connections that change at once, by weights and gradients that leave no just dropped one its place."""
    table = GOLDEN["regrow_share_cosine"]
    assert table["floor"] == LAST_SHARE
    learner = learners.granet(steps=table["total_steps"], drop=table["start"], until=0.0, every=1)
    size = 100_000
    weights = jnp.where(jnp.arange(2 * size) < size, jnp.arange(2.0 * size) + 1, 0)
    state = {"a": Connections((weights > 0).astype(jnp.float32))}
    now = Step({"a": (weights == 0).astype(jnp.float32)}, {"a": weights}, state, ())
    assert learner.finish is not None
    finish = jax.jit(learner.finish)
    for step, share in table["values"].items():
        after = finish(KEY, jnp.int32(int(step) - 1), now, now)
        lost = int(((weights > 0) & (after.state["a"].mask == 0)).sum())
        assert abs(lost - np.ceil(size * share)) <= 1  # its program is in double precision
        assert after.state["a"].mask.sum() == size


def test_it_goes_on_from_its_target():
    """After T the global prune stays away, and layers keep their numbers."""
    learner, loss = learners.granet(density=0.1, steps=8, every=1, until=0.5), objective("mlp")
    params, state = learner.init(KEY, inputs("mlp")[2])
    opt, totals = None, []
    for number in range(8):
        after = train(learner, loss, params, state, NESTEROV, 1, first=number, opt=opt)
        params, state, opt = after.params, after.state, after.opt
        totals.append({path: int(one.mask.sum()) for path, one in state.items()})
        for path, one in state.items():
            assert not np.asarray(params[path])[one.mask == 0].any() and set(np.unique(one.mask)) <= {0, 1}
            for velocities in held(opt, params):
                assert not np.asarray(velocities[path])[one.mask == 0].any()
    expected = [int(136 * (0.1 + 0.4 * (1 - time / 4) ** 3)) - 1 for time in range(1, 4)]
    assert [sum(one.values()) for one in totals[:3]] == expected
    assert totals[2:] == [totals[2]] * 6


@pytest.mark.slow
def test_in_training():
    result = seed_alone(learners.granet(density=0.2, start_density=1.0, every=2, steps=8, until=1.0))
    params = split(result.variables)[0]
    assert sum(mask.sum() for mask in result.masks.values()) == 2 * (int(168 * (0.2 + 0.8 * (1 - 3 / 4) ** 3)) - 1)
    for layer, mask in result.masks.items():  # the fourth change is at T, where the net is not pruned
        assert not np.asarray(params[f"{layer}/kernel"])[mask == 0].any()


def test_options_out_of_range():
    wrongs = {"density": 0.0, "start_density": 1.5, "drop": 0.0, "every": 0, "until": -0.1, "steps": 0}
    for name, wrong in {**wrongs, "distribution": "any"}.items():
        with pytest.raises(UserError, match=name):
            learners.granet(**{name: wrong})
