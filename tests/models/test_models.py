import math
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from ssm.errors import UserError
from ssm.models import FCN, MODELS, RESNETS, ConvNet, ResNet, count_weights, elu, max_pool, smooth_pool
from ssm.models.resnet import FrozenNorm
from ssm.ops.epilogue import IDENTITY
from tests.support.quick import quick

IMAGES = jax.random.normal(jax.random.key(1), (6, 8, 8, 3))


def shapes(net, image=(32, 32, 3)):
    return jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, *image)))


def test_the_fcn_has_the_papers_weights():
    found = shapes(FCN(), (28, 28, 1))
    assert count_weights(found) == 266_200
    assert set(found["params"]) == {"Dense_0", "Dense_1", "Dense_2"}
    assert all(set(layer) == {"kernel"} for layer in found["params"].values())


@pytest.mark.parametrize(
    ("name", "options", "weights", "layers"),
    [
        ("conv2", {}, 4_300_992, 5),
        ("conv4", {}, 2_425_024, 7),
        ("conv6", {}, 2_261_184, 9),
        ("conv8", {}, 5_275_840, 11),
        ("resnet20", {}, 248_624, 23),
        ("resnet20", {"width": 1.5}, 558_600, 23),
        ("resnet20", {"width": 2.0}, 992_352, 23),
        ("resnet20", {"width": 2.5}, 1_549_880, 23),
        ("resnet20", {"width": 3.0}, 2_231_184, 23),
        ("resnet56", {"classes": 100}, 834_992, 59),
        ("resnet110", {"classes": 100}, 1_705_904, 113),
        ("resnet110", {"classes": 100, "projections": 2}, 1_668_272, 116),
    ],
)
def test_the_nets_have_the_papers_weights_and_nothing_else(name, options, weights, layers):
    found = shapes(MODELS[name](**options))
    assert set(found) == {"params"}
    assert count_weights(found) == weights
    paths = jax.tree_util.tree_flatten_with_path(found["params"])[0]
    assert {path[-1].key for path, _ in paths} == {"kernel"}
    assert len(paths) == layers


def test_every_model_has_the_same_fields_and_call():
    for name, model in MODELS.items():
        net = model(classes=7, width=0.1, kernel_init=nn.initializers.ones, dot_general=None, conv_general_dilated=None)
        valid = jax.ShapeDtypeStruct((2,), bool)
        logits, _ = jax.eval_shape(
            lambda images, valid, net=net: net.init_with_output(jax.random.key(0), images, train=True, valid=valid),
            jax.ShapeDtypeStruct((2, 32, 32, 3), jnp.float32),
            valid,
        )
        assert logits.shape == (2, 7), name


def test_width_multiplies_all_but_the_classes():
    kernels = shapes(FCN(width=0.5), (28, 28, 1))["params"]
    assert [kernels[f"Dense_{index}"]["kernel"].shape for index in range(3)] == [(784, 150), (150, 50), (50, 10)]
    kernels = shapes(ConvNet(pairs=(64, 128), width=0.1))["params"]
    assert [kernels[f"Conv_{index}"]["kernel"].shape[-1] for index in range(4)] == [6, 6, 13, 13]
    assert [kernels[f"Dense_{index}"]["kernel"].shape[-1] for index in range(3)] == [26, 26, 10]
    assert shapes(ResNet(width=0.01))["params"]["Block_08"]["Conv_1"]["kernel"].shape == (3, 3, 1, 1)


@pytest.mark.parametrize(("name", "convolutions", "products"), [("conv4", 4, 3), ("resnet20", 22, 1), ("fcn", 0, 3)])
def test_the_given_convolution_and_product_are_used_everywhere(name, convolutions, products):
    calls = []

    def convolve(*args, epilogue=IDENTITY, **kwargs):
        calls.append("convolution")
        return epilogue.function(jax.lax.conv_general_dilated(*args, **kwargs))

    def multiply(*args, **kwargs):
        calls.append("product")
        return jax.lax.dot_general(*args, **kwargs)

    shapes(MODELS[name](conv_general_dilated=convolve, dot_general=multiply))
    assert (calls.count("convolution"), calls.count("product")) == (convolutions, products)


def test_elu_and_its_gradient_are_flaxs():
    x = jnp.concatenate([jnp.linspace(-30, 30, 601), jnp.array([0.0, -0.0, 1e-3, -1e-3])])
    np.testing.assert_allclose(elu(x), nn.elu(x), atol=1.2e-7)
    np.testing.assert_allclose(jax.vmap(jax.grad(elu))(x), jax.vmap(jax.grad(nn.elu))(x), atol=1.2e-7)


def test_elu_keeps_nan_and_infinities():
    np.testing.assert_array_equal(elu(jnp.array([jnp.nan, jnp.inf, -jnp.inf])), [np.nan, np.inf, -1])


@pytest.mark.parametrize("shape", [(2, 8, 6, 5), (2, 7, 5, 3)])
@pytest.mark.parametrize("ties", quick([False, True]))
def test_max_pool_and_its_gradient_are_flaxs(shape, ties):
    x = jax.random.normal(jax.random.key(0), shape)
    x = jnp.round(x) if ties else x  # about half the windows then have several largest
    flaxs = lambda x: nn.max_pool(x, (2, 2), strides=(2, 2))  # noqa: E731
    expected, expected_back = jax.vjp(flaxs, x)
    found, back = jax.vjp(max_pool, x)
    np.testing.assert_array_equal(found, expected)
    cotangent = jax.random.normal(jax.random.key(1), found.shape)
    np.testing.assert_array_equal(back(cotangent)[0], expected_back(cotangent)[0])
    many = jax.vmap(max_pool)(jnp.stack([x, -x]))
    np.testing.assert_array_equal(many, jnp.stack([found, flaxs(-x)]))


@pytest.mark.parametrize("ties", [False, True])
def test_the_stems_pool_and_its_gradient_are_flaxs(ties):
    x = jax.random.normal(jax.random.key(0), (2, 7, 6, 3))
    x = jnp.round(x) if ties else x
    flaxs = lambda x: nn.max_pool(x, (3, 3), strides=(1, 1), padding="SAME")  # noqa: E731
    expected, expected_back = jax.vjp(flaxs, x)
    found, back = jax.vjp(smooth_pool, x)
    np.testing.assert_array_equal(found, expected)
    cotangent = jax.random.normal(jax.random.key(1), found.shape)
    # A pixel may be the largest of up to nine windows, whose cotangents are summed in another order.
    np.testing.assert_allclose(back(cotangent)[0], expected_back(cotangent)[0], rtol=1e-5, atol=1e-6)


def test_a_tie_in_a_window_goes_to_its_first_element():
    window = jnp.array([[1.0, 3.0], [3.0, 3.0]]).reshape(1, 2, 2, 1)
    gradient = jax.grad(lambda x: max_pool(x).sum())(window)
    np.testing.assert_array_equal(gradient[0, :, :, 0], [[0, 1], [0, 0]])


def test_a_frozen_layer_divides_by_sqrt_1001():
    x = jnp.array([[1.0, -2.0]])
    np.testing.assert_allclose(FrozenNorm().apply({}, x), x / math.sqrt(1.001), rtol=1e-7)
    params = {"scale": jnp.array([2.0, 3.0]), "bias": jnp.array([0.5, 0.0])}
    found = FrozenNorm(affine=True).apply({"params": params}, x)
    np.testing.assert_allclose(found, x / math.sqrt(1.001) * params["scale"] + params["bias"], rtol=1e-6)


def test_batch_norm_has_the_variables_of_its_kind():
    frozen = shapes(ResNet(stem_affine=True))
    assert set(frozen["params"]["BatchNorm_0"]) == {"scale", "bias"}
    assert "BatchNorm_0" not in frozen["params"]["Block_00"]
    statistics = shapes(ResNet(batch_norm="statistics"))
    assert count_weights(statistics["params"]) == 248_624
    assert set(statistics["batch_stats"]["Block_00"]) == {"BatchNorm_0", "BatchNorm_1", "BatchNorm_2"}
    assert set(statistics["batch_stats"]["Block_01"]) == {"BatchNorm_0", "BatchNorm_1"}
    affine = shapes(ResNet(batch_norm="affine"))
    assert set(affine["params"]["Block_08"]["BatchNorm_1"]) == {"scale", "bias"}
    assert count_weights(affine["params"]) == 248_624 + count_weights(affine["batch_stats"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["statistics", "affine"])
def test_batch_statistics_leave_padding_out(kind):
    net = ResNet(blocks=1, batch_norm=kind)
    variables = jax.jit(net.init)(jax.random.key(0), IMAGES)
    padded = jnp.concatenate([IMAGES, jnp.full((2, 8, 8, 3), 100.0)])
    valid = jnp.arange(8) < 6
    train = jax.jit(partial(net.apply, train=True, mutable=["batch_stats"]))
    expected, alone = train(variables, IMAGES)
    found, changed = train(variables, padded, valid=valid)
    np.testing.assert_allclose(found[:6], expected, rtol=1e-4, atol=1e-4)
    chex.assert_trees_all_close(changed, alone, rtol=1e-4, atol=1e-6)
    wrong, _ = train(variables, padded)
    assert not np.allclose(wrong[:6], expected, atol=1e-2)


@pytest.mark.slow
def test_running_averages_are_used_outside_training():
    net = ResNet(blocks=1, batch_norm="statistics")
    variables = net.init(jax.random.key(0), IMAGES)
    # Untouched averages are mean 0 and variance 1: the frozen net.
    frozen = ResNet(blocks=1).apply({"params": variables["params"]}, IMAGES)
    np.testing.assert_allclose(net.apply(variables, IMAGES), frozen, rtol=1e-4, atol=1e-5)
    _, changed = net.apply(variables, IMAGES, train=True, mutable=["batch_stats"])
    stem = nn.Conv(16, (3, 3), use_bias=False).apply({"params": variables["params"]["Conv_0"]}, IMAGES)
    averages = changed["batch_stats"]["BatchNorm_0"]
    np.testing.assert_allclose(averages["mean"], 0.01 * stem.mean((0, 1, 2)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(averages["var"], 0.99 + 0.01 * stem.var((0, 1, 2)), rtol=1e-5)


def test_layers_sorted_by_name_are_in_order():
    blocks = [name for name in shapes(MODELS["resnet56"]())["params"] if name.startswith("Block")]
    assert blocks == sorted(blocks) and len(blocks) == 27


def test_impossible_options_say_what_to_do():
    assert all("batch_norm" in MODELS[name]().__dataclass_fields__ for name in RESNETS)
    with pytest.raises(UserError, match="projections must be in 1 to 3, the residual blocks of a stage; got 4"):
        shapes(ResNet(projections=4))
    with pytest.raises(UserError, match="unknown batch_norm 'off'; known are frozen, statistics, affine"):
        shapes(ResNet(batch_norm="off"))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["fcn", "conv2", "resnet20"])
def test_raw_images_are_refused(name):
    net = MODELS[name](width=0.1)
    images = np.zeros((2, 8, 8, 3), np.uint8)
    with pytest.raises(UserError, match=r"uint8 \[2, 8, 8, 3\], but the net takes standardised ones"):
        jax.eval_shape(net.init, jax.random.key(0), images)
