import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.learners import ttq
from tests.support.literature import KEY, NETS, close, golden, inputs, objective, same, sgd, train
from tests.support.quick import quick
from tests.support.short import check_run

FILE = golden("ttq")
CASES = FILE["cases"]


def begun(case):
    """Return a case's learner, params and state."""
    learner = ttq(threshold=case["t"])
    params, state = learner.init(KEY, inputs(case["net"])[2])
    values = {"plus": jnp.float32(case["Wp"]), "minus": jnp.float32(case["Wn"])}
    return learner, {path: {**own, **values} for path, own in params.items()}, state


def part(params, name):
    return {path: own[name] for path, own in params.items()}


@pytest.mark.parametrize("name", quick(CASES))
def test_the_program_s_steps(name):
    case = CASES[name]
    net, (learner, params, state) = case["net"], begun(case)
    same(learner.masks(params, state), case["mask"])
    close(NETS[net](learner.weights(params, state, None), inputs(net)[0]), case["logits"])
    if "grad_effective_weight" in case:
        close(jax.grad(objective(net))(learner.weights(params, state, None)), case["grad_effective_weight"])
    optimizer = sgd(case["lr"], momentum=case["momentum"], decay=case["weight_decay_in_loss"])
    after = train(learner, objective(net), params, state, optimizer)
    for ours, theirs in (("latent", "latent"), ("plus", "Wp"), ("minus", "Wn")):
        close(part(after.gradients[0], ours), case[f"grad_{theirs}"])
        close(part(after.params, ours), case[f"{theirs}_after_3_steps"])
    close(after.losses, case["losses_of_3_steps"])
    close(after.losses[0], case["loss"])


def test_a_weight_exactly_at_the_threshold_keeps_its_sign_with_size_1():
    case = FILE["at_the_threshold"]
    learner = ttq(threshold=case["t"])
    latent = jnp.asarray(case["latent"], jnp.float32)

    def weights(latent):
        params = {"latent": latent, "plus": jnp.float32(case["Wp"]), "minus": jnp.float32(case["Wn"])}
        return learner.weights({"a": params}, {"a": ()}, None)["a"]

    np.testing.assert_array_equal(weights(latent), np.float32(case["value"]))
    np.testing.assert_array_equal(
        jax.grad(lambda latent: weights(latent).sum())(latent), np.float32(case["gradient_of_sum"])
    )


def test_the_gradient_of_the_lower_value_is_minus_the_sum_below():
    """Of the effective weights' gradients, all 1 here; a port has plus the sum."""
    latent = jnp.asarray([1.0, -1.0, -0.8, 0.01])

    def total(values):
        return ttq().weights({"a": {"latent": latent, **values}}, {"a": ()}, None)["a"].sum()

    found = jax.grad(total)({"plus": jnp.float32(1), "minus": jnp.float32(1)})
    assert (found["plus"], found["minus"]) == (1, -2)


def test_a_density_keeps_so_many_where_the_program_keeps_one_fewer():
    """Its top int(n (1 - sparsity)) = 12 are compared strictly with the least of them."""
    case = FILE["fixed_sparsity_variant"]
    kernels = {"dense2": inputs("mlp")[2]["dense2"]}
    size = kernels["dense2"].size
    for kept, density in ((case["kept"], case["kept"] / size), (case["kept"] + 1, 1 - case["sparsity"])):
        learner = ttq(density=density)
        params, state = learner.init(KEY, kernels)
        masks = learner.masks(params, state)
        assert np.count_nonzero(masks["dense2"]) == kept
        if kept == case["kept"]:
            same(masks, {"dense2": case["ternary"]})
            close(learner.weights(params, state, None), {"dense2": case["ternary"]})


def test_the_values_start_at_1_or_at_the_mean_of_those_kept():
    kernels = {"a": jnp.asarray([[2.0, -1.0, 0.05, 0.0]])}
    for start, value in (("one", 1.0), ("mean", 1.5)):
        params, _ = ttq(start=start).init(KEY, kernels)
        assert (params["a"]["plus"], params["a"]["minus"]) == (value, value)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"density": 0.2, "start": "mean"}], ids=["threshold", "density"])
def test_a_short_run(options):
    result = check_run(ttq(**options))
    if options:
        assert [np.count_nonzero(mask[0]) for mask in result.masks.values()] == [6, 3]


@pytest.mark.parametrize("options", [{"threshold": 1.0}, {"density": 1.5}, {"start": "two"}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UserError, match=next(iter(options))):
        ttq(**options)
