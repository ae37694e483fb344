import jax.numpy as jnp
import pytest

from ssm.learners import signed_top_k
from tests.support.literature import check_scores, golden, inputs, scores, signed_constants
from tests.support.quick import quick

CASES = golden("supsup_signed_topk")["cases"]


@pytest.mark.parametrize("name", quick(CASES))
def test_the_program_s_steps(name):
    case = CASES[name]
    kernels = signed_constants(inputs(case["net"])[2])
    check_scores(signed_top_k(density=case["keep"]), case, scores(case["net"]), kernels)


@pytest.mark.parametrize("name", ["ties", "zero_scores"])
def test_ties_and_zeros(name):
    case = golden("supsup_signed_topk")[name]
    found = signed_top_k(density=case["keep"]).masks({"a": jnp.asarray(case["scores"])}, {})
    assert found["a"].tolist() == case["mask"]
