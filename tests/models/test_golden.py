"""The authors' own program on the same inputs, number by number: loss, gradients, masks, and scores after steps."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ssm import losses
from ssm.learners import dense, signed
from ssm.ops.convolution import conv_general_dilated
from ssm.optim import sgdw
from ssm.supermask import joined
from ssm.trees import flatten
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
SLOW += (
    "conv2-masked-auto",
    "conv2-masked-im2col",
    "resnet20-masked-plain",
    "resnet20-baseline-auto",
    "resnet20-masked-auto",
)  # beside their plain form
# On a CPU, `auto` is `im2col` in the first layer and `winograd` in the others.
OTHERS = {
    "conv2-masked": ("im2col", "plain"),
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


def learner(case, *, folded=False):
    return signed(folded=folded) if case["masked"] else dense()


def turned(tree):
    """Return a tree with its matrices turned between [in, out] and [out, in], as which a CPU's trainer holds them."""
    return jax.tree.map(lambda leaf: leaf.T if jnp.ndim(leaf) == 2 else leaf, tree)


def begin(case, *, folded=False):
    """Return the learner's params and state by layer, as training holds them, and what the case gives."""
    given, path = inputs(case), paths(case)
    taus = case["thresholds"] if case["masked"] else [case["tau"]] * len(path)
    params, state = {}, {}
    for (name, _), tau in zip(case["layers"], taus, strict=True):
        # The program keeps a score beyond the threshold, we keep one at it, too; Conv2 has one such score.
        upper = jnp.asarray(np.nextafter(np.float32(tau), np.float32(1)))
        score = jnp.asarray(given.scores[name]) if case["masked"] else None
        options = {"scores": lambda *_, score=score: score, "threshold": lambda _, upper=upper: (-upper, upper)}
        made = signed(**options, folded=folded) if case["masked"] else dense()
        one = made.init(jax.random.key(0), {"/".join(path[name]): jnp.asarray(given.weights[name])})
        params, state = params | one[0], state | one[1]
    return turned(params), turned(state), given


def convolution(name):
    """Return the convolution of a name: `plain` is JAX's, as the nets have it by themselves; others, forms of ours."""
    return {} if name == "plain" else {"conv_general_dilated": partial(conv_general_dilated, form=name)}


def forward(case, convolves, images, rule, params, state):
    weights = joined(turned(rule.weights(params, state, None)))
    module = net(case).clone(**convolution(convolves))
    # Dense ResNets use batch statistics; their running averages begin here and are dropped.
    logits, _ = module.apply({"params": weights}, images, train=not case["masked"], mutable=["batch_stats"])
    return logits


def plain(layers, state, *, folded):
    """Return params or their gradients, nested, with matrices [in, out] and without what folding made of the signs."""
    signs = {path: one.signs if folded else 1 for path, one in state.items()}
    return joined(turned({path: leaf * signs[path] for path, leaf in layers.items()}))


def close(case, tree, expected, rtol):
    leaves, path = flatten(tree), paths(case)
    assert len(leaves) == len(expected)
    for name, layer in expected.items():
        found, atol = summary(leaves[path[name]]), rtol * layer["l2"]
        np.testing.assert_allclose(found["l2"], layer["l2"], rtol=rtol, err_msg=name)
        for part in ("sum", "first", "last"):
            np.testing.assert_allclose(found[part], layer[part], rtol=rtol, atol=atol, err_msg=f"{name}, {part}")


def kept(case, rule, params, state):
    found, path = rule.masks(params, state), paths(case)
    return [np.mean(np.asarray(found["/".join(path[name])]) != 0) for name, _ in case["layers"]]


def forms():
    """Yield every case with the convolutions that training takes, and some with each other form of them.

    All in the general form of the learner, two in the folded one: the deeper nets' second form would take as long to
    compile, and test no other code.
    """
    for case in CASES + CONVOLUTIONAL:
        for convolves in ("auto", *OTHERS.get(identify(case), ())):
            name = f"{identify(case)}-{convolves}"
            slow = [pytest.mark.slow] if {case["name"], identify(case), name} & set(SLOW) else []
            yield pytest.param(case, "general", convolves, id=name, marks=slow)
        if case["masked"] and case["name"] in ("fcn", "conv2"):
            slow = [pytest.mark.slow] if case["name"] == "conv2" else []
            yield pytest.param(case, "folded", "auto", id=f"{identify(case)}-folded", marks=slow)


@pytest.mark.parametrize(("case", "form", "convolves"), list(forms()))
def test_golden(case, form, convolves):
    folded = form == "folded"
    rule, recipe, rtol = learner(case, folded=folded), case["sgdw"], tolerance(case)
    params, frozen, given = begin(case, folded=folded)

    def loss_of(params):
        logits = forward(case, convolves, jnp.asarray(given.images), rule, params, frozen)
        return losses.by_name("clipped")(logits, jnp.asarray(given.labels, jnp.int32)).mean(), logits

    @jax.jit
    def step(params, state):
        (loss, logits), gradients = jax.value_and_grad(loss_of, has_aux=True)(params)
        optimizer = sgdw(recipe["learning_rate"], recipe["weight_decay"], momentum=recipe["momentum"])
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss, logits, gradients

    state = sgdw(0.0, 0.0).init(params)
    found = []
    for index in range(len(recipe["losses"])):
        params, state, loss, logits, gradients = step(params, state)
        found.append(loss)
        if index == 0:
            expected = case["forward"]
            np.testing.assert_allclose(loss, expected["loss"], rtol=rtol)
            logarithms = np.log(expected["probabilities"])
            np.testing.assert_allclose(jax.nn.log_softmax(logits)[:2], logarithms, rtol=rtol, atol=rtol)
            close(case, plain(gradients, frozen, folded=folded), case["gradients"], rtol)
    np.testing.assert_allclose(found, recipe["losses"], rtol=rtol)
    close(case, plain(params, frozen, folded=folded), recipe["after"], tolerance(case, after_steps=True))
    if case["masked"]:
        assert kept(case, rule, params, frozen) == recipe["kept_fraction"]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow if case["name"] in SLOW else [], id=identify(case))
        for case in CASES + CONVOLUTIONAL
        if case["masked"]
    ],
)
def test_golden_masks(case):
    params, frozen, _ = begin(case)
    shares = [score_bound(shape) if case["batchnorm_layers"] else 1 for _, shape in case["layers"]]
    np.testing.assert_allclose(case["thresholds"], np.multiply(case["tau"], shares), rtol=1e-6)
    assert kept(case, learner(case), params, frozen) == case["kept_fraction"]
