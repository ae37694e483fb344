import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.learners import Step, sca
from tests.support.literature import KEY, NETS, arrays, close, golden, inputs, objective, same, sgd, train
from tests.support.short import check_run

FILE = golden("sca")
CASES = FILE["cases"]


def state_of(theta, strength=1.0, scale=1.0):
    return {path: {"strength": jnp.float32(strength), "scale": jnp.float32(scale)} for path in theta}


@pytest.mark.parametrize("name", CASES)
def test_the_program_s_steps(name):
    case = CASES[name]
    net, learner = case["net"], sca(alpha=case["alpha"], strength=case["lambda"])
    theta = arrays(FILE["theta"])
    _, state = learner.init(KEY, theta)
    close(NETS[net](learner.weights(theta, state, KEY), inputs(net)[0]), case["logits"])
    after = train(learner, objective(net), theta, state, sgd(case["lr"], momentum=case["momentum"]))
    close(after.losses[0], case["cross_entropy"])
    close(after.penalties[0], case["regulariser"])
    close(after.gradients[0], case["grad_theta_of_total"])
    close(after.losses, case["cross_entropies_of_3_steps"])
    close(after.penalties, case["regularisers_of_3_steps"])
    close(after.params, case["theta_after_3_steps"])
    same(learner.masks(after.params, state), case["rounded_after_3_steps"])
    same(learner.weights(after.params, state, None), case["rounded_after_3_steps"])


@pytest.mark.parametrize("alpha", FILE["regulariser"]["by_alpha"])
def test_the_penalty_and_its_gradient(alpha):
    expected, theta = FILE["regulariser"]["by_alpha"][alpha], arrays({"a": FILE["regulariser"]["theta"]})
    learner = sca(alpha=float(alpha), strength=1.0)
    found = jax.value_and_grad(learner.penalty)(theta, state_of(theta))
    close(found[0], expected["R"])
    # At -3 it is a multiple of 1 - tanh^2 = 0.0099, which the last place of tanh moves by 1.2e-5 of its own.
    close(found[1]["a"][1:], expected["gradient"][1:])
    close(found[1]["a"][0], expected["gradient"][0], rtol=3e-5)


def theta_of(value):
    """Return an argument whose tanh is a float32 value exactly."""
    near = np.arctanh(np.float64(value)).astype(np.float32)
    tried = [near]
    for way in (np.float32(-9), np.float32(9)):
        one = near
        for _ in range(4):
            one = np.nextafter(one, way)
            tried.append(one)
    tanh = np.asarray(jnp.tanh(jnp.asarray(tried)))
    return np.asarray(tried)[np.argmin(np.abs(tanh - np.float32(value)))]


def test_a_half_goes_to_0():
    case = FILE["rounding"]
    theta = {"a": jnp.asarray([theta_of(value) for value in case["tanh_theta"]])}
    found = np.asarray(jnp.tanh(theta["a"]))
    np.testing.assert_allclose(found, case["tanh_theta"], rtol=1e-7)
    assert (found == np.float32(case["tanh_theta"])).sum() >= 4 and (np.abs(found[[1, 4]]) == 0.5).all()
    np.testing.assert_array_equal(sca().masks(theta, state_of(theta))["a"], case["value"])


def test_training_is_unrounded_and_a_test_is_rounded_both_scaled():
    theta = {"a": jnp.asarray([[0.3], [-2.0]])}
    learner = sca(density=0.5)
    _, state = learner.init(KEY, theta)
    scale = np.float32(np.sqrt(1.5 / (0.5 * 2)))
    assert state["a"]["scale"] == scale
    np.testing.assert_allclose(learner.weights(theta, state, KEY)["a"], scale * np.tanh(theta["a"]), rtol=1e-6)
    np.testing.assert_array_equal(learner.weights(theta, state, None)["a"], scale * np.float32([[0], [-1]]))
    np.testing.assert_array_equal(learner.masks(theta, state)["a"], [[0], [-1]])


def test_the_penalty_grows_from_0_to_its_strength():
    learner = sca(strength=0.1, ramp=4)
    params, state = learner.init(KEY, {"a": jnp.ones((2, 3))})
    found = []
    for step in range(7):
        found.append(float(state["a"]["strength"]))
        state = learner.update(KEY, jnp.int32(step), Step(params, params, state, ())).state
    np.testing.assert_allclose(found, [0, 0.025, 0.05, 0.075, 0.1, 0.1, 0.1], rtol=1e-6)
    assert learner.penalty(params, state) != 0
    assert sca().update is None  # without a ramp its state is no part of what is carried


def test_it_starts_glorot_uniform():
    theta, _ = sca().init(KEY, {"a": jnp.zeros((300, 100))})
    bound = (6 / 400) ** 0.5
    assert bound * 0.999 < np.abs(theta["a"]).max() <= bound
    assert theta["a"].std() == pytest.approx(bound / 3**0.5, rel=0.01)


@pytest.mark.slow
def test_a_large_theta_is_rounded_to_what_a_test_uses():
    check_run(sca(ramp=3, density=0.1))
    result = check_run(sca(alpha=0.2, strength=1.0, ramp=2), epochs=10, learning_rate=0.1)
    kernel = result.variables["params"]["net"]["layers_0"]["kernel"]
    assert np.count_nonzero(result.masks["layers_0"])  # the penalty drove some to 1
    np.testing.assert_array_equal(result.masks["layers_0"], np.round(np.tanh(kernel)))


@pytest.mark.parametrize("options", [{"alpha": 2.5}, {"strength": -1}, {"ramp": -1}, {"density": 1.5}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UserError, match=next(iter(options))):
        sca(**options)
