import jax.numpy as jnp
import numpy as np
import pytest

from ssm.learners import gem_miner
from ssm.learners.gem_miner import Flagged, frozen_out
from tests.support.literature import arrays, close, golden, inputs, objective, same, sgd, signed_constants, train
from tests.support.quick import quick

FILE = golden("gem_miner")
CASES = FILE["cases"]


def whole(kernels):
    return {path: Flagged(kernel, jnp.ones_like(kernel)) for path, kernel in kernels.items()}


@pytest.mark.parametrize("name", quick(CASES))
def test_the_program_s_steps(name):
    case = CASES[name]
    state = whole(signed_constants(inputs(case["net"])[2]))
    params = arrays(FILE["scores"][case["net"]])
    learner = gem_miner(every=100, steps=1000)
    clamped = {path: jnp.clip(score, 0, 1) for path, score in params.items()}
    same(learner.masks(clamped, state), case["mask"])
    after = train(learner, objective(case["net"]), params, state, sgd(0.1, momentum=0.9))
    close(after.losses, case["cross_entropies_of_3_steps"])
    close(after.penalties, case["regularisers_of_3_steps"])
    close(after.gradients[0], case["grad_scores_with_regulariser"])
    close(after.params, case["scores_after_3_steps_unclamped"])
    freeze = case["freeze_after_3_steps"]
    once = frozen_out(after.params, after.state, freeze["prune_rate"])
    same({path: one.flag for path, one in once.items()}, freeze["flag"])
    twice = frozen_out(after.params, once, freeze["prune_rate"])
    left = [sum(int(one.flag.sum()) for one in state.values()) for state in (once, twice)]
    assert left == [freeze["active_left"], case["second_freeze_same_scores"]["active_left"]]


def test_the_rate_leads_to_the_density():
    for percent, period, epochs, times, rate in FILE["prune_rate_table"]["rows"]:
        assert (epochs - 1) // period == times
        assert 1 - (percent / 100) ** (1 / times) == pytest.approx(rate)


def test_a_half_is_rounded_down():
    scores = jnp.asarray(FILE["rounding"]["scores"], jnp.float32)
    state = {"a": Flagged(jnp.ones(5), jnp.ones(5))}
    assert gem_miner().masks({"a": scores}, state)["a"].tolist() == FILE["rounding"]["mask"]


def test_all_at_the_threshold_are_frozen_out():
    case = FILE["freeze_ties"]
    scores = {"a": jnp.asarray(case["scores"], jnp.float32)}
    found = frozen_out(scores, whole({"a": jnp.ones(10)}), case["prune_rate"])
    assert found["a"].flag.tolist() == case["flag"]


def test_weights_are_frozen_out_between_the_first_and_the_last_step():
    learner = gem_miner(density=0.25, every=2, steps=6)  # after steps 2 and 4, not at the end
    state, left = whole(inputs("mlp")[2]), []
    after = train(learner, objective("mlp"), arrays(FILE["scores"]["mlp"]), state, sgd(0.1), 1)
    for step in range(1, 6):
        left.append(sum(float(one.flag.sum()) for one in after.state.values()))
        after = train(learner, objective("mlp"), after.params, after.state, sgd(0.1), 1, first=step)
    left.append(sum(float(one.flag.sum()) for one in after.state.values()))
    assert left == [136, 68, 68, 34, 34, 34]
    flags = np.concatenate([np.asarray(one.flag).ravel() for one in after.state.values()])
    masks = np.concatenate([np.asarray(mask).ravel() for mask in learner.masks(after.params, after.state).values()])
    assert not masks[flags == 0].any()
