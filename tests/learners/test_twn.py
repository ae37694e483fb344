import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.learners import twn
from tests.support.literature import NETS, close, golden, gradient, inputs, objective, same, sgd, train
from tests.support.short import check_run

FILE = golden("twn")
CASES = FILE["cases"]


def weights(latent, learner=None):
    return (learner or twn()).weights({"a": jnp.asarray(latent, jnp.float32)}, {"a": ()}, None)["a"]


@pytest.mark.parametrize("name", CASES)
def test_the_program_s_steps(name):
    case = CASES[name]
    net, learner = case["net"], twn()
    x, _, kernels = inputs(net)
    params, state = learner.init(jax.random.key(0), kernels)
    masks, effective = learner.masks(params, state), learner.weights(params, state, None)
    same(masks, case["mask"])
    close({path: jnp.abs(kernel).max() for path, kernel in effective.items()}, case["alpha"])
    close({path: 0.7 * jnp.abs(kernel).mean() for path, kernel in kernels.items()}, case["delta"])
    close(NETS[net](effective, x), case["logits"])
    close(gradient(learner, objective(net), params, state), case["grad_latent"])
    optimizer = sgd(case["lr"], momentum=case["momentum"], decay=case["weight_decay"])
    after = train(learner, objective(net), params, state, optimizer)
    close(after.losses, case["losses_of_3_steps"])
    close(after.losses[0], case["loss"])
    close(after.params, case["latent_after_3_steps"])


def test_values_of_a_small_layer():
    close(weights(FILE["small"]["latent"]), FILE["small"]["value"])


def test_the_factor_is_not_the_0_75_of_a_port():
    between = np.asarray([1.0, 0.725 / (2 - 0.725)])  # the second is 0.725 of the mean
    assert np.count_nonzero(weights(between)) == 2 and np.count_nonzero(weights(between, twn(factor=0.75))) == 1


def test_the_threshold_is_one_for_a_layer_not_one_for_each_output():
    found = weights([[10.0, 0.1], [10.0, 0.1]])
    np.testing.assert_array_equal(found, [[10, 0], [10, 0]])


def test_a_weight_at_the_threshold_is_0():
    np.testing.assert_array_equal(weights([1.0, 0.5, -1.5], twn(factor=0.5)), [1.25, 0, -1.25])


def test_the_gradient_is_that_at_the_effective_weight_without_alpha():
    latent = jnp.asarray([3.0, -2.0, 0.1])
    found = jax.grad(lambda latent: jnp.sum(jnp.asarray([1.0, 2.0, 3.0]) * weights(latent)))(latent)
    np.testing.assert_array_equal(found, [1, 2, 3])


@pytest.mark.parametrize("density", [0.5, 0.1, 0.02])
def test_a_density_is_that_of_normal_weights(density):
    latent = 0.3 * jax.random.normal(jax.random.key(0), (500, 400))
    found = twn(density=density).masks({"a": latent}, {"a": ()})["a"]
    assert np.count_nonzero(found) / latent.size == pytest.approx(density, rel=0.03)
    kept = np.count_nonzero(twn().masks({"a": latent}, {"a": ()})["a"]) / latent.size
    assert kept == pytest.approx(0.58, abs=0.01)  # of normal weights


def test_a_layer_of_zeros_stays_finite():
    np.testing.assert_array_equal(weights(np.zeros(4)), np.zeros(4))


@pytest.mark.slow
def test_a_short_run():
    check_run(twn())


@pytest.mark.parametrize("options", [{"factor": -1}, {"factor": float("inf")}, {"density": 1.5}, {"density": -0.1}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UserError, match=next(iter(options))):
        twn(**options)
