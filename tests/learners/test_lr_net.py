from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.nn import sigmoid

from ssm.errors import UserError
from ssm.learners import chances, lr_net
from ssm.supermask.reparameterisation import drawn_output
from tests.support.literature import KEY, arrays, close, golden, inputs
from tests.support.quick import quick
from tests.support.short import check_run, net_of, short_run

FILE = golden("lr_net")
CASES = FILE["cases"]


def logits_of(case):
    logits = arrays({"zero": case["logit_zero"], "plus": case["logit_plus_given_nonzero"]})
    return {case["layer"]: logits}, {case["layer"]: jnp.float32(1)}


def product_of(case):
    """Return the layer's own product, and its input."""
    x = inputs(case["net"])[0]
    if case["net"] == "mlp":
        return partial(lax.dot_general, dimension_numbers=(((1,), (0,)), ((), ()))), x
    layout = ("NHWC", "HWIO", "NHWC")
    return partial(lax.conv_general_dilated, window_strides=(1, 1), padding="SAME", dimension_numbers=layout), x[:1]


@pytest.mark.parametrize("name", quick(CASES))
def test_outputs_drawn_with_the_program_s_noise(name):
    case = CASES[name]
    layer, learner, (params, state) = case["layer"], lr_net(), logits_of(case)
    product, x = product_of(case)
    noise, cotangent = (jnp.asarray(case[key], jnp.float32) for key in ("noise", "cotangent"))

    def drawn(params, x, noise):
        mean = learner.weights(params, state, KEY)[layer]
        variance = learner.variances(params, state)[layer]
        return drawn_output(product, variance, lambda shape, dtype: noise.reshape(shape), x, mean)

    close(drawn(params, x, noise), case["pre_activation"])
    ones, zeros = jnp.ones_like(noise), jnp.zeros_like(noise)
    close((drawn(params, x, ones) - drawn(params, x, -ones)) / 2, case["sigma"])
    close(drawn(params, x, zeros), product(x, learner.weights(params, state, KEY)[layer]))
    gradients = jax.grad(lambda *args: jnp.sum(cotangent * drawn(*args, noise)), (0, 1))(params, x)
    close(gradients[0][layer]["zero"], case["grad_logit_zero"])
    close(gradients[0][layer]["plus"], case["grad_logit_plus"])
    if "p_plus" in case:
        close(chances.probabilities(params[layer])[0], case["p_plus"])
        close(chances.probabilities(params[layer])[1], case["p_minus"])
        close(gradients[1], case["grad_x"])


@pytest.mark.parametrize("name", CASES)
def test_the_start_of_a_trained_layer(name):
    case = CASES[name]
    found = chances.of_trained(jnp.asarray(case["pretrained_weight"], jnp.float32))
    close(found["zero"], case["logit_zero"])
    close(found["plus"], case["logit_plus_given_nonzero"])


def test_the_start_of_single_weights():
    case = FILE["initialisation_from_a_trained_weight"]
    found = chances.of_trained(jnp.asarray(case["w"], jnp.float32))
    close(found["zero"], case["logit_zero"])
    close(found["plus"], case["logit_plus_given_nonzero"])
    close(sigmoid(found["zero"]), case["p_zero"])
    close(sigmoid(found["plus"]), case["p_plus_given_nonzero"])


def test_the_start_without_a_trained_layer():
    case = FILE["initialisation_without"]
    params, state = lr_net(start="flat", scaled=True).init(KEY, {"a": jnp.ones((3, 2))})
    for name in ("zero", "plus"):
        expected = case["logit_zero" if name == "zero" else "logit_plus_given_nonzero"]
        close(params["a"][name], np.full((3, 2), expected))
    close(sigmoid(params["a"]["zero"]), np.full((3, 2), case["p_zero"]))
    assert float(state["a"]) == pytest.approx((1.5 / (0.67 * 3)) ** 0.5)  # sqrt(1.5 / (d fan_in))


def test_kernels_are_divided_by_their_standard_deviation():
    kernel = 0.07 * jax.random.normal(KEY, (30, 40))
    found = lr_net().init(KEY, {"a": kernel})[0]["a"]
    jax.tree.map(np.testing.assert_array_equal, found, chances.of_trained(kernel / kernel.std()))


@pytest.mark.slow
def test_scale_and_moments_of_draws():
    """Of 4,000 draws: the mean is that of training, the variance that of the noise."""
    kernels = {"b": jnp.asarray([[-0.4], [0.1], [0.0], [0.6]]), "a": jnp.asarray([[1.0], [-2.0]])}
    learner = lr_net(scaled=True)
    params, state = learner.init(KEY, kernels)
    drawn = jax.jit(jax.vmap(lambda key: learner.draw(params, state, key)))(jax.random.split(KEY, 4000))
    mean, variance = learner.weights(params, state, KEY), learner.variances(params, state)
    for path, scale in state.items():
        assert set(np.unique(drawn[path])) == {-float(scale), 0, float(scale)}
        np.testing.assert_allclose(drawn[path].mean(0), mean[path], atol=0.05 * scale)
        np.testing.assert_allclose(drawn[path].var(0), variance[path], atol=0.05 * scale**2)
    assert not np.array_equal(drawn["a"][:, 0] > 0, drawn["b"][:, 0] < 0)  # keys of their own


def test_a_test_without_draws_is_that_of_the_likeliest_weights():
    zero = jnp.asarray([3.0, -3.0, -3.0, -3.0, 0.0])
    params = {"a": {"zero": zero, "plus": jnp.asarray([1.0, 2.0, -2.0, 0.0, 1.0])}}
    learner = lr_net(draws=0)
    np.testing.assert_array_equal(learner.masks(params, {"a": 0.5})["a"], [0, 1, -1, 1, 0])
    np.testing.assert_array_equal(learner.weights(params, {"a": 0.5}, None)["a"], [0, 0.5, -0.5, 0.5, 0])
    assert learner.draw is None and lr_net().draws == 7


def test_the_penalty_is_that_of_the_logits():
    params = {"a": {"zero": jnp.asarray([1.0, -2.0]), "plus": jnp.asarray([3.0])}, "b": {"zero": jnp.asarray([1.0])}}
    assert lr_net(decay=0.1).penalty(params, {}) == pytest.approx(0.1 * (1 + 4 + 9 + 1))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"draws": 0, "scaled": True}], ids=["draws", "mode"])
def test_a_short_run(options):
    result = check_run(lr_net(**options), learning_rate=0.3)
    assert len({row["test_loss"] for row in result.history}) == 4
    if options:
        net, one = net_of(lr_net(**options)), jax.tree.map(lambda leaf: leaf[0], result.variables)
        for layer in net.weights(one).values():
            assert len(np.unique(np.abs(layer["kernel"]))) <= 2  # 0 and the layer's scale


@pytest.mark.slow
def test_training_is_noisy_and_a_test_averages_draws():
    frozen = {"learning_rate": 0.0, "epochs": 2, "batch_size": 64}
    rows = short_run(lr_net(), **frozen).history
    assert rows[0]["train_loss"] != rows[1]["train_loss"]
    rows = short_run(lr_net(draws=0), **frozen).history
    assert rows[0]["train_loss"] != rows[1]["train_loss"] and rows[0]["test_loss"] == rows[1]["test_loss"]


@pytest.mark.parametrize("options", [{"start": "cold"}, {"decay": -1.0}, {"draws": -1}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UserError, match=next(iter(options))):
        lr_net(**options)
