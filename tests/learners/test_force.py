"""FORCE against its program: the masks of all pruning steps; afterwards the kept weights are trained."""

import jax.numpy as jnp
import numpy as np
import pytest

from ssm import learners, losses
from ssm.errors import UserError
from ssm.learners import Step
from ssm.learners.force import kept_counts
from ssm.supermask import split
from tests.support.literature import (
    KEY,
    close,
    golden,
    inputs,
    objective,
    same,
    seed_alone,
    sgd,
    train,
    true_logit,
)
from tests.support.quick import quick

GOLDEN = golden("force")


@pytest.mark.parametrize("name", quick(GOLDEN["cases"]))
def test_masks_of_the_published_program(name):
    case = GOLDEN["cases"][name]
    learner = learners.force(density=case["keep"], pruning_steps=case["T"], recover="snip" not in name)
    loss = objective(case["net"], true_logit if "nll_of_raw_logits" in name else losses.cross_entropy)
    kernels = inputs(case["net"])[2]
    params, state = learner.init(KEY, kernels)
    optimizer, opt = sgd(0.1, momentum=0.9, nesterov=True, decay=5e-4), None
    for number, step in enumerate(case["steps"]):
        before = state
        after = train(learner, loss, params, state, optimizer, 1, first=number, opt=opt)
        params, state, opt, (gradient,) = after.params, after.state, after.opt, after.gradients
        same(learner.masks(params, state), step["mask"])
        same(params, kernels)
        assert sum(int(one.mask.sum()) for one in state.values()) == step["kept"]
        if "saliency" in step:
            close({path: jnp.abs(leaf * gradient[path]) for path, leaf in params.items()}, step["saliency"])
        if "came_back" in step:
            back = sum(int(((before[path].mask == 0) & (one.mask == 1)).sum()) for path, one in state.items())
            assert back == step["came_back"]


def test_kept_weights_are_trained_from_rest():
    learner, loss, kernels = learners.force(density=0.3, pruning_steps=2), objective("mlp"), inputs("mlp")[2]
    optimizer = sgd(0.1, momentum=0.9, nesterov=True, decay=5e-4)
    chosen = train(learner, loss, *learner.init(KEY, kernels), optimizer, 2)
    masks = learner.masks(chosen.params, chosen.state)
    after = train(learner, loss, chosen.params, chosen.state, optimizer, 3, first=2, opt=chosen.opt)
    same(learner.masks(after.params, after.state), masks)

    plain = {path: kernel * masks[path] for path, kernel in kernels.items()}

    def masked_loss(kernels):
        return loss({path: kernel * masks[path] for path, kernel in kernels.items()})

    expected = train(learners.dense(), masked_loss, plain, {path: () for path in plain}, optimizer, 3)
    close(after.losses, expected.losses)
    close(after.params, expected.params)
    assert all(not np.any(np.where(masks[path] == 0, leaf, 0)) for path, leaf in after.params.items())


def test_keep_shares_and_counts():
    for name, shares in GOLDEN["keep_share_by_step"].items():
        _, keep, _, steps = name.split()
        by_step = shares.items() if isinstance(shares, dict) else enumerate(shares, 1)
        counts = kept_counts(10**9, float(keep), int(steps))
        for step, share in by_step:
            assert counts[int(step) - 1] == int(10**9 * share)
    for total, keep, kept in GOLDEN["kept_count_table"]["rows"]:
        assert kept_counts(total, keep, 1) == [kept or 1]  # their program stops where nothing is to be kept


def test_ties_are_kept():
    ties = GOLDEN["ties"]
    saliency = jnp.asarray(ties["saliency"])
    learner = learners.force(density=ties["keep"], pruning_steps=1)
    params, state = learner.init(KEY, {"a": jnp.ones_like(saliency)})
    now = Step({"a": saliency}, params, state, ())
    same(learner.masks(params, learner.finish(KEY, jnp.int32(0), now, now).state), {"a": ties["mask"]})


@pytest.mark.slow
def test_in_training():
    result = seed_alone(learners.force(density=0.2, pruning_steps=3))
    params = split(result.variables)[0]
    for seed in range(2):
        kept = sum(int(mask[seed].sum()) for mask in result.masks.values())
        assert int(0.2 * 168) <= kept <= int(0.2 * 168) + 2  # ties
    for layer, mask in result.masks.items():
        assert np.array_equal(params[f"{layer}/kernel"] != 0, mask == 1)


def test_options_out_of_range():
    for wrong in ({"density": 0.0}, {"density": 1.1}, {"pruning_steps": 0}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            learners.force(**wrong)
