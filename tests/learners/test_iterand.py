import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.learners import iterand
from ssm.learners.iterand import SCORES, kept_of, rerandomized
from tests.support.literature import (
    close,
    golden,
    gradient,
    inputs,
    objective,
    same,
    scores,
    sgd,
    signed_constants,
    train,
)
from tests.support.quick import quick

CASES = golden("iterand")["cases"]


@pytest.mark.parametrize("name", quick(CASES))
def test_the_program_s_steps(name):
    case = CASES[name]
    kernels = inputs(case["net"])[2]
    signed = "signed_constant" in name
    kernels = signed_constants(kernels) if signed else kernels
    params = {path: np.float32(np.sqrt(6)) * score for path, score in scores(case["net"]).items()}
    learner, loss = iterand(density=1 - case["sparsity"]), objective(case["net"])
    masks = learner.masks(params, kernels)
    same(masks, case["mask"])
    assert {path: int(mask.sum()) for path, mask in masks.items()} == case["kept"]
    close(gradient(learner, loss, params, kernels), case["grad_scores"])
    optimizer = sgd(0.3, momentum=0.9, decay=1e-4)
    first = train(learner, loss, params, kernels, optimizer, 1)
    again = {}
    for path, drawn in case["rerandomised_before_step_2"].items():
        same({path: learner.masks(first.params, kernels)[path]}, {path: drawn["mask"]})
        scale = float(jnp.abs(kernels[path]).ravel()[0]) if signed else 1
        fresh = scale * jnp.asarray(drawn["fresh_sign_or_value"], jnp.float32)
        again[path] = rerandomized(kernels[path], jnp.asarray(drawn["mask"]), jnp.asarray(drawn["b"]), fresh)
        close(again[path] / scale, drawn["weights_after"])
    rest = train(learner, loss, first.params, again, optimizer, 2, first=1, opt=first.opt)
    close([*first.losses, *rest.losses], case["losses_of_3_steps"])
    close(rest.params, case["scores_after_3_steps"])


def test_counts_are_the_program_s():
    rows = golden("iterand")["kept_count_table"]["rows"]
    assert [kept_of(size, 1 - sparsity) for size, sparsity, _ in rows] == [kept for *_, kept in rows]


@pytest.mark.parametrize("name", ["ties", "negative_scores"])
def test_all_scores_at_the_threshold_are_kept_and_signs_count(name):
    case = golden("iterand")[name]
    found = iterand(density=1 - case["sparsity"]).masks({"a": jnp.asarray(case["scores"])}, {})
    assert found["a"].tolist() == case["mask"]


def test_scores_are_wider_than_edge_popup_s():
    drawn = SCORES(jax.random.key(0), (3, 3, 64, 128))
    assert float(jnp.abs(drawn).max()) == pytest.approx(
        golden("iterand")["initialisation_of_conv_3x3_64_to_128"]["sqrt(6/fan_in)"], rel=1e-3
    )


@pytest.mark.slow
def test_hidden_weights_are_drawn_before_every_so_many_steps():
    learner = iterand(density=0.5, every=3, rate=0.5, redraw=lambda key, shape, dtype: jnp.full(shape, 7.0, dtype))
    kernels = {"dense1": inputs("mlp")[2]["dense1"], "dense2": inputs("mlp")[2]["dense2"]}
    loss = objective("mlp")
    params, state, opt = scores("mlp"), kernels, None
    changed, mask_of = [], jax.jit(learner.masks)
    for step in range(6):
        after = train(learner, loss, params, state, sgd(0.1), 1, first=step, opt=opt)
        changed.append(sum(int((after.state[path] != state[path]).sum()) for path in kernels))
        masks = mask_of(after.params, after.state)
        for path, mask in masks.items():
            assert not ((np.asarray(after.state[path]) != np.asarray(state[path])) & (np.asarray(mask) == 1)).any()
        params, state, opt = after.params, after.state, after.opt
    # Step 3, counted from 1, is the first with other weights: they change after step 2.
    assert [bool(count) for count in changed] == [False, True, False, False, True, False]
