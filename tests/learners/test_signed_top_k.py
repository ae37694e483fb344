import jax.numpy as jnp
import pytest

from ssm.learners import signed_top_k
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

CASES = golden("supsup_signed_topk")["cases"]


@pytest.mark.parametrize("name", CASES)
def test_the_program_s_steps(name):
    case = CASES[name]
    kernels = signed_constants(inputs(case["net"])[2])
    learner, params, loss = signed_top_k(density=case["keep"]), scores(case["net"]), objective(case["net"])
    same(learner.masks(params, kernels), case["mask"])
    close(gradient(learner, loss, params, kernels), case["grad_scores"])
    after = train(learner, loss, params, kernels, sgd(0.1, momentum=0.9, decay=1e-4))
    close(after.losses, case["losses_of_3_steps"])
    close(after.params, case["scores_after_3_steps"])


@pytest.mark.parametrize("name", ["ties", "zero_scores"])
def test_ties_and_zeros(name):
    case = golden("supsup_signed_topk")[name]
    found = signed_top_k(density=case["keep"]).masks({"a": jnp.asarray(case["scores"])}, {})
    assert found["a"].tolist() == case["mask"]
