import jax.numpy as jnp
import pytest

from ssm.learners import mpt, mpt_global
from ssm.learners.mpt_global import Timed, kept_shares
from tests.support.literature import check_scores, close, golden, inputs, objective, scores, sgd, train
from tests.support.quick import quick

CASES = golden("mpt")["cases"]
LAYERWISE = [name for name in CASES if "layerwise" in name]


def check(learner, case, state):
    params = scores(case["net"])
    weights = learner.weights(params, state, None)
    for path, alpha in case["alpha"].items():
        assert float(jnp.abs(weights[path]).max()) == pytest.approx(alpha, rel=1e-6)
    close(objective(case["net"])(weights), case["loss"])
    check_scores(learner, case, params, state, first=10)


@pytest.mark.parametrize("name", quick(LAYERWISE))
def test_the_layerwise_form(name):
    case = CASES[name]
    check(mpt(density=case["keep"]), case, inputs(case["net"])[2])


def test_the_global_form():
    case = CASES["mlp_global_keep0.3"]
    state = {path: Timed(kernel, jnp.int32(10)) for path, kernel in inputs("mlp")[2].items()}
    check(mpt_global(density=0.3, epoch=1), case, state)


@pytest.mark.slow
def test_alpha_is_over_a_count_that_is_not_the_number_kept():
    for size, keep, kept, divisor, alpha in golden("mpt")["alpha_table"]["rows"]:
        if divisor and size <= 27:
            kernel, score = {"a": jnp.ones(size)}, {"a": jnp.arange(1.0, size + 1)}
            found = {
                rule: mpt(density=keep, alpha=rule).weights(score, kernel, None)["a"].max()
                for rule in ("program", "kept")
            }
            assert float(found["program"]) == pytest.approx(alpha)
            assert float(found["kept"]) == pytest.approx(1)
            assert int(mpt(density=keep).masks(score, kernel)["a"].sum()) == kept


def test_the_global_share_falls_by_epoch():
    table = golden("mpt")["global_keep_share_by_epoch"]
    for density, shares in table["by_final_keep"].items():
        assert kept_shares(float(density), table["ramp_epochs"]) == pytest.approx(shares[: table["ramp_epochs"] + 1])


def test_the_global_form_drops_all_at_the_threshold():
    case = golden("mpt")["global_ties"]
    state = {"a": Timed(jnp.ones(10), jnp.int32(10))}
    found = mpt_global(density=case["keep"], epoch=1).masks({"a": jnp.asarray(case["scores_abs"])}, state)
    assert found["a"].tolist() == case["mask"]


def test_the_share_falls_as_steps_are_made():
    state = {path: Timed(kernel, jnp.int32(0)) for path, kernel in inputs("mlp")[2].items()}
    learner = mpt_global(density=0.1, ramp=2, epoch=1)
    after, shares = None, []
    for _ in range(4):
        before = scores("mlp") if after is None else after.params
        masks = learner.masks(before, state if after is None else after.state)
        shares.append(sum(int(mask.sum()) for mask in masks.values()) / 136)
        after = train(
            learner,
            objective("mlp"),
            before,
            state if after is None else after.state,
            sgd(0.0),
            1,
            first=len(shares) - 1,
        )
    assert shares == pytest.approx([0.5, 0.15, 0.1, 0.1], abs=0.008)
