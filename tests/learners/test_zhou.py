import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ssm.learners import zhou
from ssm.learners.zhou import masked
from tests.support.literature import arrays, close, golden, inputs, objective, scores
from tests.support.quick import quick

FILE = golden("zhou_supermask")
CASES = FILE["cases"]


def frozen(case):
    kernels = inputs(case["net"])[2]
    if "constant" not in case:
        return kernels
    return {path: jnp.sign(kernel) * case["constant"][path] for path, kernel in kernels.items()}


@pytest.mark.parametrize("name", quick(CASES))
def test_the_program_s_steps_with_its_masks(name):
    case = CASES[name]
    kernels, params = frozen(case), {path: 4 * score for path, score in scores(case["net"]).items()}
    loss, rescale = objective(case["net"]), "multiplier" in case
    optimizer = optax.sgd(case["lr"], momentum=0.9)
    opt, losses = optimizer.init(params), []
    for number, drawn in enumerate(case["masks_drawn_at_steps_1_2_3"]):
        masks = arrays(drawn)

        def value(params, masks=masks):
            return loss({path: masked(kernels[path], masks[path], params[path], rescale=rescale) for path in params})

        found, gradients = jax.value_and_grad(value)(params)
        if number == 0:
            close(gradients, case["grad_scores"])
        losses.append(float(found))
        updates, opt = optimizer.update(gradients, opt, params)
        params = optax.apply_updates(params, updates)
    close(losses, case["losses_of_3_steps"])
    close(params, case["scores_after_3_steps"])


def test_the_gradient_also_runs_through_the_multiplier():
    kernel, kept, score = jnp.asarray([1.0, -2.0]), jnp.asarray([1.0, 0.0]), jnp.asarray([0.3, -0.2])
    found = jax.grad(lambda score: masked(kernel, kept, score, rescale=True).sum())(score)
    slope, multiplier, given = jax.nn.sigmoid(score) * jax.nn.sigmoid(-score), 2.0, kernel
    expected = slope * (multiplier * given - jnp.sum(given * kept) * 2 / 1.0**2)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_masks_are_drawn_anew_in_training_and_for_each_test():
    learner = zhou(rescale=False)
    params, state = learner.init(jax.random.key(0), {"a": jnp.ones((50, 40))})
    assert not params["a"].any()  # scores start at 0
    drawn = [learner.weights(params, state, jax.random.key(seed))["a"] for seed in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert 0.4 < float((drawn[0] != drawn[2]).mean()) < 0.6
    np.testing.assert_array_equal(learner.draw(params, state, jax.random.key(1))["a"], drawn[0])
    assert learner.draws == 10


def test_the_mask_that_stands_for_all_has_their_density():
    learner = zhou(rescale=False)
    _, state = learner.init(jax.random.key(0), {"a": jnp.ones((300, 100))})
    params = {"a": jnp.full((300, 100), -3.0)}
    mask = learner.masks(params, state)["a"]
    assert float(mask.mean()) == pytest.approx(float(jax.nn.sigmoid(-3.0)), abs=4e-3)
    np.testing.assert_array_equal(learner.weights(params, state, None)["a"], mask)
