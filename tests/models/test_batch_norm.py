"""Batch normalisation and other activations in the paper's FCN and Conv nets: block B of the comparison."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.models import FCN, ConvNet, ResNet, count_weights, elu, max_pool
from ssm.ops import activations
from ssm.ops.activations import sign
from ssm.trees import flatten
from tests.support.quick import quick
from tests.support.variables import drawn

IMAGES = jax.random.normal(jax.random.key(1), (4, 8, 8, 3))
SMALL_FCN = partial(FCN, hidden=(6, 5), classes=3)
SMALL_CONV = partial(ConvNet, pairs=(4, 5), hidden=(6,), classes=3)


def norm(x):
    axes = tuple(range(x.ndim - 1))
    return (x - x.mean(axes)) / jnp.sqrt(x.var(axes) + 1e-3)


def conv(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def kernels_of(variables):
    return {name: layer["kernel"] for name, layer in variables["params"].items()}


def fcn(kernels, activate, norm=lambda x: x):
    x = IMAGES.reshape(4, -1)
    for name in ("Dense_0", "Dense_1"):
        x = activate(norm(x @ kernels[name]))
    return norm(x @ kernels["Dense_2"])


def conv_net(kernels, activate, norm=lambda x: x):
    x = IMAGES
    for pair in range(2):
        x = activate(norm(conv(x, kernels[f"Conv_{2 * pair}"])))
        x = activate(max_pool(norm(conv(x, kernels[f"Conv_{2 * pair + 1}"]))))
    x = activate(norm(x.reshape(4, -1) @ kernels["Dense_0"]))
    return norm(x @ kernels["Dense_1"])


@pytest.mark.parametrize(("net", "plain"), [(SMALL_FCN, fcn), (SMALL_CONV, conv_net)])
def test_without_options_the_nets_are_as_they_were(net, plain):
    variables = drawn(net(), IMAGES)
    assert set(variables) == {"params"}
    np.testing.assert_array_equal(net().apply(variables, IMAGES), plain(kernels_of(variables), elu))


@pytest.mark.parametrize("activation", quick(["elu", "relu", "sign"]))
@pytest.mark.parametrize(("net", "plain", "layers"), [(SMALL_FCN, fcn, 3), (SMALL_CONV, conv_net, 6)])
def test_every_layer_is_normalised_the_last_included(net, plain, layers, activation):
    activate = {"elu": elu, "relu": jax.nn.relu, "sign": sign}[activation]
    made = net(activation=activation, batch_norm="statistics")
    variables = drawn(made, IMAGES)
    assert set(variables["batch_stats"]) == {f"BatchNorm_{number}" for number in range(layers)}
    assert count_weights(variables["params"]) == count_weights(drawn(net(), IMAGES))
    found, changed = made.apply(variables, IMAGES, train=True, mutable=["batch_stats"])
    expected = plain(kernels_of(variables), activate, norm)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    for path, average in flatten(changed["batch_stats"]).items():
        assert (average != flatten(variables["batch_stats"])[path]).any(), path


@pytest.mark.parametrize(("net", "plain"), [(SMALL_FCN, fcn), (SMALL_CONV, conv_net)])
def test_another_activation_needs_no_batch_normalisation(net, plain):
    variables = drawn(net(activation="relu"), IMAGES)
    found = net(activation="relu").apply(variables, IMAGES)
    np.testing.assert_allclose(found, plain(kernels_of(variables), jax.nn.relu), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("net", quick([SMALL_FCN, SMALL_CONV]))
def test_padding_is_left_out(net):
    made = net(activation="relu", batch_norm="statistics")
    variables = drawn(made, IMAGES)
    train = jax.jit(partial(made.apply, train=True, mutable=["batch_stats"]))
    expected, alone = train(variables, IMAGES)
    padded = jnp.concatenate([IMAGES, jnp.full((2, 8, 8, 3), 100.0)])
    found, changed = train(variables, padded, valid=jnp.arange(6) < 4)
    np.testing.assert_allclose(found[:4], expected, rtol=1e-4, atol=1e-4)
    chex.assert_trees_all_close(changed, alone, rtol=1e-4, atol=1e-6)
    wrong, _ = train(variables, padded)
    assert not np.allclose(wrong[:4], expected, atol=1e-2)


def test_a_resnet_takes_another_activation_and_its_own_kinds_of_batch_normalisation(monkeypatch):
    def shapes(**options):
        return jax.eval_shape(ResNet(blocks=1, width=0.1, **options).init, jax.random.key(0), IMAGES)

    plain, calls = shapes(), []
    with pytest.raises(UserError, match="unknown batch_norm 'none'; known are frozen, statistics, affine"):
        shapes(batch_norm="none")
    monkeypatch.setattr(activations, "ACTIVATIONS", {"relu": lambda x: calls.append(x.shape) or jax.nn.relu(x)})
    assert ResNet().batch_norm == "frozen" and shapes(activation="relu") == plain
    assert len(calls) == 1 + 3 * 3  # the stem, and three in each projection block


@pytest.mark.parametrize("net", [FCN, ConvNet])
def test_unknown_options_are_refused(net):
    with pytest.raises(UserError, match="unknown batch_norm 'frozen'; known are none, statistics, affine"):
        jax.eval_shape(net(batch_norm="frozen").init, jax.random.key(0), IMAGES)
    with pytest.raises(UserError, match="unknown activation 'tanh'; known are elu, relu, sign"):
        jax.eval_shape(net(activation="tanh").init, jax.random.key(0), IMAGES)
