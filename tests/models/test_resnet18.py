from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ssm.models import ResNet18
from ssm.models.description import Convolution
from ssm.models.networks import conv_layer
from ssm.models.resnet18 import BasicBlock
from tests.support.variables import drawn


def shapes(net, side=32):
    return jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, side, side, 3)))


def test_the_first_block_of_the_wider_stages_has_a_convolved_shortcut():
    params = shapes(ResNet18())["params"]
    assert set(params) == {"Conv_0", "Dense_0", *(f"Block_{number:02d}" for number in range(8))}
    assert params["Conv_0"]["kernel"].shape == (3, 3, 3, 64)
    shortcuts = {name: block["Conv_2"]["kernel"].shape for name, block in params.items() if "Conv_2" in block}
    assert shortcuts == {"Block_02": (1, 1, 64, 128), "Block_04": (1, 1, 128, 256), "Block_06": (1, 1, 256, 512)}
    statistics = shapes(ResNet18())["batch_stats"]
    assert set(statistics) == set(params) - {"Conv_0", "Dense_0"} | {"BatchNorm_0"}
    assert set(statistics["Block_02"]) == {"BatchNorm_0", "BatchNorm_1", "BatchNorm_2"}
    assert set(statistics["Block_03"]) == {"BatchNorm_0", "BatchNorm_1"}


def test_the_numbers_of_blocks_make_resnet34():
    params = shapes(ResNet18(blocks=(3, 4, 6, 3), width=0.1))["params"]
    assert sum(name.startswith("Block") for name in params) == 16


def test_a_block_adds_its_convolutions_and_its_input():
    def convolve(x, kernel, stride):
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=numbers)

    x = jnp.sin(jnp.arange(216.0)).reshape(2, 6, 6, 3)
    for size, stride in ((3, 1), (4, 2)):
        block = BasicBlock(size, stride, conv_layer, lambda x: 2 * x, jax.nn.relu)
        variables = drawn(block, x)
        found: Any = block.apply(variables, x)
        kernels = {name: layer["kernel"] for name, layer in variables["params"].items()}
        y = jax.nn.relu(2 * convolve(x, kernels["Conv_0"], stride))
        y = 2 * convolve(y, kernels["Conv_1"], 1)
        shortcut = 2 * convolve(x, kernels["Conv_2"], stride) if stride > 1 else x
        np.testing.assert_allclose(found, jax.nn.relu(y + shortcut), rtol=1e-5, atol=1e-5)


def test_a_layer_of_a_description_has_no_bias():
    layer = conv_layer(Convolution("Conv_7", 5, window=1, stride=2))
    assert (layer.name, layer.features, layer.strides, layer.use_bias) == ("Conv_7", 5, 2, False)
