"""The authors' own program on the same inputs, number by number: loss, gradients, masks, and scores after steps."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from ssm.training.gauge import flip, from_step, to_step, transpose

from ssm import losses
from ssm.learners import LEARNERS
from ssm.ops.convolution import conv_general_dilated
from ssm.optim import sgdw
from ssm.supermask import effective_weights, masks
from ssm.trees import flatten, unflatten
from tests.support.golden_cases import CASES, CONVOLUTIONAL, identify, inputs, net, paths, score_bound, summary

SLOW = ("resnet20x1.5", "resnet20x3", "resnet56", "resnet110")  # to compile
SLOW += (
    "conv4-masked-auto",
    "conv6-masked",
    "conv8-masked",
    "conv4-baseline",
    "conv6-baseline",
    "conv8-baseline",
)  # as the smaller ones
SLOW += ("resnet20-baseline-auto", "resnet20-masked-auto")  # beside their plain form
# On a CPU, `auto` is `columns` in the first layer and `winograd` in the others.
OTHERS = {
    "conv2-masked": ("columns", "plain"),
    "conv2-baseline": ("winograd",),
    "resnet20-masked": ("plain",),
    "resnet20-baseline": ("plain",),
}


def tolerance(case, *, after_steps=False):
    """Return the relative error allowed: about three times what we reach."""
    if after_steps and identify(case) == "conv4-masked":
        # In its second step a pooling window's two largest values are within rounding: 2e-8 of the largest input.
        return 1e-4
    if case["masked"] or case["name"] == "fcn":
        return 1e-5
    return 1e-4 if case["batchnorm_layers"] else 2e-5  # batch statistics are differences of sums


def variables(case):
    given, path = inputs(case), paths(case)
    kernels = {path[name]: jnp.asarray(weight) for name, weight in given.weights.items()}
    scores = {path[name]: jnp.asarray(score) for name, score in given.scores.items()}
    taus = case["thresholds"] if case["masked"] else [case["tau"]] * len(path)
    # The program keeps a score beyond the threshold, we keep one at it, too; Conv2 has one such score.
    taus = [np.nextafter(np.float32(tau), np.float32(1)) for tau in taus]
    tau = unflatten({path[name]: jnp.asarray(tau) for (name, _), tau in zip(case["layers"], taus, strict=True)})
    frozen = {"net": unflatten(kernels), "lower": jax.tree.map(jnp.negative, tau), "upper": tau}
    return frozen, {"net": unflatten(scores if case["masked"] else kernels)}, given


def learner(case):
    return LEARNERS["signed" if case["masked"] else "baseline"]


def convolution(name):
    """Return the convolution of a name: `plain` is JAX's, as the nets have it by themselves; others, forms of ours."""
    return {} if name == "plain" else {"conv_general_dilated": partial(conv_general_dilated, form=name)}


def forward(case, convolves, images, frozen, params):
    weights = transpose(effective_weights(learner(case), frozen, params))
    module = net(case).clone(**convolution(convolves))
    # Dense ResNets use batch statistics; their running averages begin here and are dropped.
    logits, _ = module.apply({"params": weights}, images, train=not case["masked"], mutable=["batch_stats"])
    return logits


def close(case, tree, expected, rtol):
    leaves, path = flatten(tree["net"]), paths(case)
    assert len(leaves) == len(expected)
    for name, layer in expected.items():
        found, atol = summary(leaves[path[name]]), rtol * layer["l2"]
        np.testing.assert_allclose(found["l2"], layer["l2"], rtol=rtol, err_msg=name)
        for part in ("sum", "first", "last"):
            np.testing.assert_allclose(found[part], layer[part], rtol=rtol, atol=atol, err_msg=f"{name}, {part}")


def kept(case, frozen, params):
    found, path = masks(learner(case), frozen, params), paths(case)
    return [np.mean(np.asarray(found["/".join(path[name])]) != 0) for name, _ in case["layers"]]


def forms():
    """Yield every case with the convolutions that training takes, and some with each other form of them.

    All in the general form of a step, two in the gauge's, where the frozen signs are one: the deeper nets' second form
    would take as long to compile, and test no other code.
    """
    for case in CASES + CONVOLUTIONAL:
        for convolves in ("auto", *OTHERS.get(identify(case), ())):
            name = f"{identify(case)}-{convolves}"
            slow = [pytest.mark.slow] if {case["name"], identify(case), name} & set(SLOW) else []
            yield pytest.param(case, "general", convolves, id=name, marks=slow)
        if case["masked"] and case["name"] in ("fcn", "conv2"):
            yield pytest.param(case, "gauge", "auto", id=f"{identify(case)}-gauge")


@pytest.mark.parametrize(("case", "form", "convolves"), list(forms()))
def test_golden(case, form, convolves):
    frozen, params, given = variables(case)
    step_form = to_step(frozen, params, gauge=form == "gauge")
    recipe, rtol = case["sgdw"], tolerance(case)

    def loss_of(params):
        logits = forward(case, convolves, jnp.asarray(given.images), step_form.frozen, params)
        return losses.by_name("clipped")(logits, jnp.asarray(given.labels, jnp.int32)).mean(), logits

    @jax.jit
    def step(params, state):
        (loss, logits), gradients = jax.value_and_grad(loss_of, has_aux=True)(params)
        rule = sgdw(recipe["learning_rate"], recipe["weight_decay"], momentum=recipe["momentum"])
        updates, state = rule.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss, logits, gradients

    params, state = step_form.params, sgdw(0.0, 0.0).init(step_form.params)
    found = []
    for index in range(len(recipe["losses"])):
        params, state, loss, logits, gradients = step(params, state)
        found.append(loss)
        if index == 0:
            expected = case["forward"]
            np.testing.assert_allclose(loss, expected["loss"], rtol=rtol)
            logarithms = np.log(expected["probabilities"])
            np.testing.assert_allclose(jax.nn.log_softmax(logits)[:2], logarithms, rtol=rtol, atol=rtol)
            seen = {"net": flip(gradients["net"], step_form.signs)}
            close(case, transpose(seen), case["gradients"], rtol)
    np.testing.assert_allclose(found, recipe["losses"], rtol=rtol)
    after = from_step(step_form._replace(params=params))
    close(case, after, recipe["after"], tolerance(case, after_steps=True))
    if case["masked"]:
        assert kept(case, frozen, after) == recipe["kept_fraction"]


@pytest.mark.parametrize("case", [case for case in CASES + CONVOLUTIONAL if case["masked"]], ids=identify)
def test_golden_masks(case):
    frozen, params, _ = variables(case)
    shares = [score_bound(shape) if case["batchnorm_layers"] else 1 for _, shape in case["layers"]]
    np.testing.assert_allclose(case["thresholds"], np.multiply(case["tau"], shares), rtol=1e-6)
    assert kept(case, frozen, params) == case["kept_fraction"]
