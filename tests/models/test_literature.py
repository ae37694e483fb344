"""The related work's nets: what all of them have in common, and how many weights each has."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from ssm.errors import UserError
from ssm.models import LITERATURE, MODELS, WideResNet, count_weights
from ssm.models.networks import Net
from ssm.ops import activations
from ssm.trees import flatten
from tests.support.variables import drawn

IMAGES = jax.random.normal(jax.random.key(1), (6, 8, 8, 3))
NARROW = {"width": 0.02, "classes": 4}


@pytest.fixture(scope="module", autouse=True)
def _compiled_quickly():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def shapes(net, image=(32, 32, 3)):
    return jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, *image)))


@pytest.mark.parametrize(
    ("net", "weights"),
    [
        (LITERATURE["vgg_small"], 4_656_512),
        (LITERATURE["vgg_small_1024"], 12_973_440),
        (LITERATURE["vgg_small_1024x2"], 14_022_016),
        (LITERATURE["vgg19"], 20_024_000),
        (LITERATURE["wrn22_2"], 1_076_922),  # ten of them the output layer's biases
        (partial(WideResNet, widening=10), 26_784_442),
        (partial(MODELS["conv6"], width=2), 9_036_160),  # IteRand's "Conv6 x2"
    ],
)
def test_the_nets_have_the_counted_weights(net, weights):
    assert count_weights(shapes(net())["params"]) == weights


def test_resnet18_has_the_weights_counted_by_hand():
    stem = 3 * 64 * 9
    first = 4 * 64 * 64 * 9
    # One 3x3 convolution that doubles the channels, three that keep them, and the shortcut's 1x1.
    others = sum((c // 2 * c + 3 * c * c) * 9 + c // 2 * c for c in (128, 256, 512))
    assert stem + first + others + 512 * 10 == 11_164_352
    assert count_weights(shapes(LITERATURE["resnet18"]())["params"]) == 11_164_352


@pytest.mark.parametrize("name", LITERATURE)
def test_every_net_has_the_fields_and_the_call_of_the_others(name):
    given = {"kernel_init": nn.initializers.ones, "dot_general": None, "conv_general_dilated": None}
    net = LITERATURE[name](classes=7, width=0.1, **given)
    assert isinstance(net, Net) and (net.activation, net.batch_norm) == ("relu", "statistics")
    logits, variables = jax.eval_shape(
        lambda images, valid: net.init_with_output(jax.random.key(0), images, train=True, valid=valid),
        jax.ShapeDtypeStruct((2, 32, 32, 3), jnp.float32),
        jax.ShapeDtypeStruct((2,), bool),
    )
    assert logits.shape == (2, 7)
    names = {path[-1] for path in flatten(variables["params"])}
    assert names == ({"kernel", "bias"} if name == "wrn22_2" else {"kernel"})


@pytest.mark.parametrize("name", LITERATURE)
def test_the_given_convolution_and_product_are_used_everywhere(name):
    calls = []

    def convolve(*args, **kwargs):
        calls.append("convolution")
        return jax.lax.conv_general_dilated(*args, **kwargs)

    def multiply(*args, **kwargs):
        calls.append("product")
        return jax.lax.dot_general(*args, **kwargs)

    kernels = [
        leaf
        for path, leaf in flatten(
            shapes(LITERATURE[name](conv_general_dilated=convolve, dot_general=multiply))["params"]
        ).items()
        if path[-1] == "kernel"
    ]
    assert calls.count("convolution") == sum(len(kernel.shape) == 4 for kernel in kernels)
    assert calls.count("product") == sum(len(kernel.shape) == 2 for kernel in kernels)


# The other VGG nets have the same layers.
@pytest.mark.parametrize(
    "name",
    [
        "resnet18",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("vgg_small", "vgg_small_1024", "vgg_small_1024x2", "vgg19", "wrn22_2")
        ),
    ],
)
def test_a_step_of_training_changes_every_average_and_leaves_padding_out(name):
    # Nothing is negative, so that no unit is dead in the first layers and every average moves.
    side = 16 if name == "vgg19" else 8
    images = jnp.abs(jax.random.normal(jax.random.key(1), (4, side, side, 3)))
    net = LITERATURE[name](**NARROW)
    variables = jax.tree.map(jnp.abs, drawn(net, images))
    train = jax.jit(partial(net.apply, train=True, mutable=["batch_stats"]))
    expected, alone = train(variables, images, valid=jnp.ones(4, bool))
    assert expected.shape == (4, 4)
    for path, average in flatten(alone["batch_stats"]).items():
        assert (average != flatten(variables["batch_stats"])[path]).any(), path

    spoilt = images.at[3].set(100.0)
    valid = jnp.arange(4) < 3
    found, changed = train(variables, spoilt, valid=valid)
    again, same = train(variables, images, valid=valid)
    np.testing.assert_allclose(found[:3], again[:3], rtol=1e-4, atol=1e-4)
    chex.assert_trees_all_close(changed, same, rtol=1e-4, atol=1e-6)
    wrong, _ = train(variables, spoilt, valid=jnp.ones(4, bool))
    assert not np.allclose(wrong[:3], again[:3], atol=1e-2)


def test_the_kinds_of_batch_normalisation_have_their_variables():
    def tree(**options):
        return jax.eval_shape(LITERATURE["vgg_small"](**NARROW, **options).init, jax.random.key(0), IMAGES)

    assert set(tree(batch_norm="none")) == {"params"}
    assert set(tree(batch_norm="affine")["params"]["BatchNorm_5"]) == {"scale", "bias"}
    assert "BatchNorm_5" not in tree()["params"] and "BatchNorm_5" in tree()["batch_stats"]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("vgg_small", 6),
        ("vgg_small_1024", 7),
        ("vgg_small_1024x2", 8),
        ("vgg19", 16),
        ("resnet18", 17),
        ("wrn22_2", 19),
    ],
)
def test_the_activation_is_used_everywhere(name, count, monkeypatch):
    calls = []
    monkeypatch.setattr(activations, "ACTIVATIONS", {"sign": lambda x: calls.append(x.shape) or activations.sign(x)})
    shapes(LITERATURE[name](**NARROW, activation="sign"))
    assert len(calls) == count


@pytest.mark.parametrize("name", LITERATURE)
def test_impossible_options_and_raw_images_are_refused(name):
    def init(image=IMAGES, **options):
        jax.eval_shape(LITERATURE[name](**NARROW, **options).init, jax.random.key(0), image)

    with pytest.raises(UserError, match="unknown batch_norm 'frozen'; known are none, statistics, affine"):
        init(batch_norm="frozen")
    with pytest.raises(UserError, match="unknown activation 'tanh'; known are elu, relu, sign"):
        init(activation="tanh")
    with pytest.raises(UserError, match="the net takes standardised ones"):
        init(jnp.zeros((2, 8, 8, 3), jnp.uint8))
