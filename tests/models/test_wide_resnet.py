from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.errors import InvalidRngError

from ssm.errors import UserError
from ssm.models import WideResNet
from ssm.models.networks import conv_layer
from ssm.models.wide_resnet import PreactivationBlock
from tests.support.variables import drawn

IMAGES = jax.random.normal(jax.random.key(1), (2, 8, 8, 3))


def test_the_layers_of_22_2():
    found = jax.eval_shape(WideResNet().init, jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
    params = found["params"]
    assert set(params) == {"Conv_0", "Dense_0", *(f"Block_{number:02d}" for number in range(9))}
    assert params["Conv_0"]["kernel"].shape == (3, 3, 3, 16)
    shortcuts = {name: block["Conv_2"]["kernel"].shape for name, block in params.items() if "Conv_2" in block}
    assert shortcuts == {"Block_00": (1, 1, 16, 32), "Block_03": (1, 1, 32, 64), "Block_06": (1, 1, 64, 128)}
    assert {name: leaf.shape for name, leaf in params["Dense_0"].items()} == {"kernel": (128, 10), "bias": (10,)}
    assert "BatchNorm_0" in found["batch_stats"]  # before the mean
    assert set(found["batch_stats"]["Block_08"]) == {"BatchNorm_0", "BatchNorm_1"}


def test_a_block_convolves_what_is_activated():
    def convolve(x, kernel, stride):
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=numbers)

    for size, stride in ((3, 1), (4, 2)):
        block = PreactivationBlock(size, stride, 0.0, conv_layer, lambda x: 2 * x, jax.nn.relu)
        variables = drawn(block, IMAGES, train=True)
        found: Any = block.apply(variables, IMAGES, train=True)
        kernels = {name: layer["kernel"] for name, layer in variables["params"].items()}
        first = jax.nn.relu(2 * IMAGES)
        second = jax.nn.relu(2 * convolve(first, kernels["Conv_0"], stride))
        shortcut = convolve(first, kernels["Conv_2"], stride) if stride > 1 else IMAGES
        np.testing.assert_allclose(found, shortcut + convolve(second, kernels["Conv_1"], 1), rtol=1e-5, atol=1e-5)


def test_dropout_is_for_training_alone_and_follows_its_key():
    make = partial(PreactivationBlock, 3, 1, conv=conv_layer, norm=lambda x: x, activation=jax.nn.relu)
    variables = drawn(make(0.0), IMAGES, train=True)

    def apply(rate, seed=0, train=True) -> Any:
        return make(rate).apply(variables, IMAGES, train=train, rngs={"dropout": jax.random.key(seed)})

    np.testing.assert_array_equal(apply(0.3), apply(0.3))
    assert not np.allclose(apply(0.3), apply(0.3, seed=1))
    np.testing.assert_array_equal(apply(0.3, train=False), apply(0.0))


def test_only_dropout_needs_a_key():
    def train(rate, *, train=True, **rngs):
        net = WideResNet(depth=10, width=0.1, dropout=rate)
        variables = jax.eval_shape(net.init, jax.random.key(0), IMAGES)
        call = partial(net.apply, train=train, mutable=["batch_stats"], rngs=rngs)
        return jax.eval_shape(call, variables, IMAGES)[0].shape

    assert train(0.0) == train(0.3, train=False) == train(0.3, dropout=jax.random.key(1)) == (2, 10)
    with pytest.raises(InvalidRngError, match="dropout"):
        train(0.3)


@pytest.mark.parametrize("depth", [4, 20, 22.0])
def test_another_depth_is_refused(depth):
    with pytest.raises(UserError, match=r"must be 10, 16, 22, \.\.\.; got"):
        jax.eval_shape(WideResNet(depth=depth).init, jax.random.key(0), IMAGES)
