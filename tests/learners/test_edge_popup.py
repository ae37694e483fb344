import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.learners import edge_popup, signed_top_k
from ssm.learners.edge_popup import SCORES
from ssm.learners.selection import kept_of
from tests.support.literature import check_scores, golden, inputs, scores, signed_constants
from tests.support.quick import quick

CASES = golden("edge_popup")["cases"]


@pytest.mark.parametrize("name", quick(CASES))
def test_the_program_s_steps(name):
    case = CASES[name]
    _, _, kernels = inputs(case["net"])
    kernels = signed_constants(kernels) if case["weights"] == "signed_constant" else kernels
    learner, params = edge_popup(density=case["keep"]), scores(case["net"])
    check_scores(learner, case, params, kernels)
    masks = learner.masks(params, kernels)
    assert {path: int(mask.sum()) for path, mask in masks.items()} == case["kept"]


def test_counts_are_the_program_s():
    rows = golden("edge_popup")["kept_count_table"]["rows"]
    assert [kept_of(size, keep) for size, keep, _ in rows] == [kept for *_, kept in rows]


def test_a_share_of_08_hides_one_of_ten():
    assert kept_of(10, 0.8) == 9  # (1 - 0.8) * 10 is below 2 in double precision


def test_of_equal_scores_the_last_are_kept():
    case = golden("edge_popup")["ties"]
    found = edge_popup(density=case["keep"]).masks({"a": jnp.asarray(case["scores_abs"])}, {})
    assert found["a"].tolist() == case["mask"]


def test_a_score_of_0_gets_no_gradient():
    case = golden("edge_popup")["zero_scores"]
    learner, zeros = edge_popup(density=0.5), jnp.zeros(8)
    ones = {"a": jnp.ones(8)}
    assert learner.masks({"a": zeros}, ones)["a"].tolist() == case["mask"]
    found = jax.grad(lambda score: learner.weights({"a": score}, ones, None)["a"].sum())(zeros)
    assert found.tolist() == case["grad_of_sum_of_mask"]


def test_scores_start_within_1_over_the_root_of_fan_in():
    drawn = SCORES(jax.random.key(0), (3, 3, 64, 128))
    assert float(jnp.abs(drawn).max()) == pytest.approx(1 / np.sqrt(576), rel=1e-3)


@pytest.mark.slow
def test_erk_keeps_small_layers_denser():
    shapes = {"Dense_0/kernel": (80, 60), "Dense_1/kernel": (60, 20), "Dense_2/kernel": (20, 10)}
    kernels = {path: jnp.ones(shape) for path, shape in shapes.items()}
    learner = edge_popup(density=0.2, shares="erk")
    masks = learner.masks(*learner.init(jax.random.key(0), kernels))
    shares = [float(mask.mean()) for mask in masks.values()]
    assert shares[0] < 0.2 < shares[1] < shares[2]
    total = sum(float(mask.sum()) for mask in masks.values()) / 6200
    assert total == pytest.approx(0.2, abs=1e-3)


def test_the_largest_of_all_layers_together():
    layers = {"a": jnp.asarray([[0.1, -0.9], [0.3, 0.8]]), "b": jnp.asarray([[-0.2, 0.05]])}
    found = edge_popup(density=0.5, shares="global").masks(layers, {})
    assert {path: mask.tolist() for path, mask in found.items()} == {"a": [[0, 1], [1, 1]], "b": [[0, 0]]}
    found = signed_top_k(density=0.6, shares="global").masks(layers, {})  # 6 - int(0.4 * 6) = 4
    assert {path: mask.tolist() for path, mask in found.items()} == {"a": [[0, -1], [1, 1]], "b": [[-1, 0]]}


def test_a_traced_density_is_no_constant():
    params = scores("mlp")
    shares = jax.jit(lambda density: edge_popup(density=density).masks(params, {})["dense1"].mean())
    assert shares(0.5) == 0.5 and shares(0.25) == 0.25


def test_densities_that_cannot_be_are_refused():
    for density in (0, 1.5):
        with pytest.raises(UserError, match="density must be in"):
            edge_popup(density=density)
