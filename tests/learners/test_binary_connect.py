from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ssm.errors import UserError
from ssm.learners import Step, binary_connect, bnn
from ssm.losses import cross_entropy
from ssm.ops.activations import sign
from tests.support.literature import KEY, NETS, arrays, close, golden, gradient, inputs, same, train
from tests.support.quick import quick
from tests.support.short import check_run, net_of, short_run

FILE = golden("binaryconnect_bnn")
CASES = FILE["cases"]


def squared_hinge(logits, labels):
    """Return each sample's mean over classes of max(0, 1 - y f)^2, with y = 1 for its own class and -1 for others."""
    targets = 2 * jax.nn.one_hot(labels, logits.shape[-1]) - 1
    return jnp.square(jnp.maximum(1 - targets * logits, 0)).mean(-1)


DECAYS = np.float32(0.9), np.float32(0.999)  # of which 1 - 0.999 is 1.3e-5 less, here as in the powers


def adam(learning_rate, epsilon=1e-8):
    """Return Lasagne's Adam, with which the cases were made: its epsilon is added before the bias is corrected.

    So it counts 1 / sqrt(1 - 0.999^t) times as much as optax's, 32 times at first, which is 3 % of a gradient of 1e-5.
    """

    def update(gradients, state, params=None):
        count = state.count + 1
        mean, square = (
            jax.tree.map(lambda old, new, rate=rate, power=power: rate * old + (1 - rate) * new**power, held, gradients)
            for rate, power, held in zip(DECAYS, (1, 2), (state.mu, state.nu), strict=True)
        )
        rate = learning_rate * jnp.sqrt(1 - DECAYS[1] ** count) / (1 - DECAYS[0] ** count)
        steps = jax.tree.map(lambda mean, square: -rate * mean / (jnp.sqrt(square) + epsilon), mean, square)
        return steps, optax.ScaleByAdamState(count, mean, square)

    return optax.GradientTransformation(optax.scale_by_adam().init, update)


@pytest.mark.parametrize("name", quick(CASES, 2))
def test_the_program_s_steps(name):
    case = CASES[name]
    net, learner = case["net"], bnn() if name.startswith("bnn") else binary_connect()
    loss = squared_hinge if name.endswith("hinge") else cross_entropy
    x, y, kernels = inputs(net)
    x, run = x * case.get("x_scale", 1), partial(NETS[net], activation=sign if name.startswith("bnn") else jax.nn.relu)
    params, (_, state) = arrays(FILE["latent"][net]), learner.init(KEY, kernels)

    def objective(weights):
        return loss(run(weights, x), y).mean()

    effective = learner.weights(params, state, None)
    same(effective, case["binary_weight"])
    same(learner.masks(params, state), case["binary_weight"])
    close(run(effective, x), case["logits"])
    close(gradient(learner, objective, params, state), case["grad_latent"])
    close({path: own["rate"] for path, own in state.items()}, case["learning_rate_scale"])
    after = train(learner, objective, params, state, adam(case["learning_rate"]))
    close(after.losses[0], case["loss"])
    close(after.losses, case["losses_of_3_steps"])
    expected = arrays(case["latent_after_3_steps"])
    if name == "bnn_mlp_hinge":  # `leave_out` says why
        expected["dense2"] = expected["dense2"].at[2, 3:].set(after.params["dense2"][2, 3:])
    close(after.params, expected)
    clipped = {path: int((jnp.abs(latent) == 1).sum()) for path, latent in after.params.items()}
    assert clipped == case["clipped_to_1"]


def test_the_sign_of_a_weight_and_of_0():
    case = FILE["sign_weight"]
    params, state = arrays({"a": case["w"]}), {"a": {"size": jnp.float32(1), "rate": jnp.float32(1)}}
    for learner in (binary_connect(), bnn()):
        np.testing.assert_array_equal(learner.weights(params, state, None)["a"], case["value"])
        np.testing.assert_array_equal(learner.weights(params, state, KEY)["a"], case["value"])
        np.testing.assert_array_equal(learner.masks(params, state)["a"], case["value"])


def test_the_activation_that_bnn_goes_with():
    case = FILE["sign_activation"]
    x = jnp.asarray(case["x"], jnp.float32)
    np.testing.assert_array_equal(sign(x), case["value"])
    np.testing.assert_array_equal(jax.vmap(jax.grad(sign))(x), case["gradient"])


@pytest.mark.parametrize("size", [1.0, 0.5])
def test_the_chance_of_plus_one(size, monkeypatch):
    case = FILE["probability_of_plus_one"]
    seen, drawn = [], jax.random.bernoulli
    monkeypatch.setattr(jax.random, "bernoulli", lambda key, chance: seen.append(chance) or drawn(key, chance))
    params = arrays({"a": size * np.asarray(case["w"])})
    state = {"a": {"size": jnp.float32(size), "rate": jnp.float32(1)}}
    learner = binary_connect(stochastic=True)
    found = [learner.weights(params, state, key)["a"] for key in jax.random.split(KEY, 400)]
    close(seen[0], case["value"])
    assert set(np.unique(found)) == {-size, size}
    np.testing.assert_allclose((np.asarray(found) > 0).mean(0), case["value"], atol=0.1)
    gradient = jax.grad(lambda params: jnp.sum(3 * learner.weights(params, state, KEY)["a"]))(params)
    np.testing.assert_array_equal(gradient["a"], np.full(7, 3))


def test_a_stochastic_learner_tests_signs_or_latent_weights():
    params, state = binary_connect().init(KEY, {"a": jnp.zeros((4, 3))})
    for learner in (binary_connect(stochastic=True), binary_connect()):
        np.testing.assert_array_equal(learner.weights(params, state, None)["a"], learner.masks(params, state)["a"])
    real = binary_connect(stochastic=True, test="real")
    np.testing.assert_array_equal(real.weights(params, state, None)["a"], params["a"])
    assert set(np.unique(real.weights(params, state, jax.random.key(1))["a"])) == {-1, 1}


@pytest.mark.parametrize("size", ["one", "glorot"])
def test_the_step_is_scaled_by_the_fans_and_then_clipped(size):
    """What is easily overlooked; the fans of a convolution count its places."""
    learner = binary_connect(size=size)
    kernels = {"conv": jnp.zeros((3, 3, 4, 6)), "dense": jnp.zeros((12, 8))}
    params, state = learner.init(KEY, kernels)
    for path, sum_of_fans in (("conv", 90), ("dense", 20)):
        scale = np.sqrt(sum_of_fans / 1.5)
        bound = 1 / scale if size == "glorot" else 1
        assert state[path]["size"] == np.float32(bound)
        assert np.abs(params[path]).max() == pytest.approx(bound, rel=0.05) and np.abs(params[path]).max() <= bound
        moved = {path: params[path] + 0.1 * bound / scale * jnp.sign(params[path])}
        before, after = (Step({}, layers, {path: state[path]}, ()) for layers in ({path: params[path]}, moved))
        found = learner.finish(KEY, jnp.int32(0), before, after).params[path]
        expected = np.clip(params[path] + 0.1 * bound * np.sign(params[path]), -bound, bound)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert (np.abs(found) == np.float32(bound)).any()
        weights = learner.weights(params, state, None)[path]
        np.testing.assert_array_equal(np.abs(weights), np.full(weights.shape, np.float32(bound)))


RUNS = [binary_connect(), binary_connect(stochastic=True, test="real", size="glorot")]


@pytest.mark.slow
@pytest.mark.parametrize("learner", RUNS, ids=["signs", "stochastic"])
def test_a_short_run(learner):
    result = check_run(learner)
    for mask in result.masks.values():
        assert set(np.unique(mask)) == {-1, 1}


def test_latent_weights_stay_within_their_bound():
    result = short_run(binary_connect(size="glorot"), learning_rate=0.3)
    one = jax.tree.map(lambda leaf: leaf[0], result.variables)
    for name, bound in (("layers_0", (1.5 / 11) ** 0.5), ("layers_2", (1.5 / 8) ** 0.5)):
        latent = np.abs(one["params"]["net"][name]["kernel"])
        assert latent.max() == np.float32(bound)
        weights = net_of(binary_connect(size="glorot")).weights(one)[name]["kernel"]
        np.testing.assert_array_equal(np.abs(weights), np.full(weights.shape, np.float32(bound)))


@pytest.mark.parametrize("options", [{"test": "both"}, {"size": "two"}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UserError, match=next(iter(options))):
        binary_connect(**options)
