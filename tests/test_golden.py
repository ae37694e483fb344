"""The authors' own program on the same inputs, number by number: loss, gradients, and scores after ten steps."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ssm import losses
from ssm.gauge import flip, from_step, to_step, transpose
from ssm.learners import LEARNERS
from ssm.models import FCN
from ssm.optim import sgdw
from ssm.supermask import effective_weights
from tests.golden_cases import CASES, inputs, summary

TOLERANCE = 1e-5


def variables(case):
    given = inputs(case)
    names = [f"Dense_{index}" for index in range(3)]
    kernels = {
        name: {"kernel": jnp.asarray(weight)} for name, weight in zip(names, given.weights.values(), strict=True)
    }
    scores = {name: {"kernel": jnp.asarray(score)} for name, score in zip(names, given.scores.values(), strict=True)}
    tau = {name: {"kernel": jnp.float32(case["tau"])} for name in names}
    frozen = {"net": kernels, "lower": jax.tree.map(jnp.negative, tau), "upper": tau}
    return frozen, {"net": scores if case["masked"] else kernels}, given


def loss_of(case, given, frozen, params, turn):
    learner = LEARNERS["signed" if case["masked"] else "baseline"]
    weights = turn(effective_weights(learner, frozen, params))
    logits = FCN().apply({"params": weights}, given.images)
    return losses.by_name("clipped")(logits, given.labels).mean()


def close(tree, expected):
    for index, layer in enumerate(expected.values()):
        found = summary(tree["net"][f"Dense_{index}"]["kernel"])
        np.testing.assert_allclose(found["l2"], layer["l2"], rtol=TOLERANCE)
        scale = layer["l2"]
        np.testing.assert_allclose(found["sum"], layer["sum"], rtol=TOLERANCE, atol=TOLERANCE * scale)
        for end in ("first", "last"):
            np.testing.assert_allclose(found[end], layer[end], rtol=TOLERANCE, atol=TOLERANCE * scale)


@pytest.mark.parametrize("form", ["general", "gauge"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "masked" if case["masked"] else "baseline")
def test_golden(case, form):
    if form == "gauge" and not case["masked"]:
        pytest.skip("the dense baseline has no frozen signs to leave out")
    frozen, params, given = variables(case)
    step_form = to_step(frozen, params, gauge=form == "gauge")
    recipe = case["sgdw"]

    @jax.jit
    def step(params, state):
        loss, gradients = jax.value_and_grad(lambda params: loss_of(case, given, step_form.frozen, params, transpose))(
            params
        )
        rule = sgdw(recipe["learning_rate"], recipe["weight_decay"], momentum=recipe["momentum"])
        updates, state = rule.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss, gradients

    params, state = step_form.params, sgdw(0.0, 0.0).init(step_form.params)
    found = []
    for index in range(len(recipe["losses"])):
        params, state, loss, gradients = step(params, state)
        found.append(loss)
        if index == 0:
            np.testing.assert_allclose(loss, case["forward"]["loss"], rtol=TOLERANCE)
            seen = {"net": flip(gradients["net"], step_form.signs)}
            close(transpose(seen), case["gradients"])
    np.testing.assert_allclose(found, recipe["losses"], rtol=TOLERANCE)
    close(from_step(step_form._replace(params=params)), recipe["after"])
