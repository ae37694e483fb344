from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.models import LITERATURE, VGG
from ssm.ops.activations import sign
from tests.support.variables import drawn

IMAGES = jax.random.normal(jax.random.key(1), (3, 8, 8, 3))


@pytest.fixture(scope="module", autouse=True)
def _compiled_quickly():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def shapes(net):
    return jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, 32, 32, 3)))


def norm(x):
    """Batch normalisation without scale and offset, by the batch's own mean and variance."""
    axes = tuple(range(x.ndim - 1))
    return (x - x.mean(axes)) / jnp.sqrt(x.var(axes) + 1e-3)


def pool(x):
    return x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2] // 2, 2, x.shape[3]).max((2, 4))


def conv(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def applied(net):
    variables = drawn(net, IMAGES)
    found, _ = jax.jit(partial(net.apply, train=True, mutable=["batch_stats"]))(variables, IMAGES)
    return found, {name: layer["kernel"] for name, layer in variables["params"].items()}


def test_the_three_forms_of_vgg_small_differ_in_their_dense_layers():
    sizes = {"vgg_small": [10], "vgg_small_1024": [1024, 10], "vgg_small_1024x2": [1024, 1024, 10]}
    for name, dense in sizes.items():
        found = shapes(LITERATURE[name]())
        kernels = {layer: kernel["kernel"].shape for layer, kernel in found["params"].items()}
        assert [kernels[f"Conv_{index}"][-1] for index in range(6)] == [128, 128, 256, 256, 512, 512]
        assert [kernels[f"Dense_{index}"][-1] for index in range(len(dense))] == dense
        assert kernels["Dense_0"][0] == 8192 and len(kernels) == 6 + len(dense)
        # The output is normalised in BinaryConnect's and BNN's net alone.
        assert len(found["batch_stats"]) == len(kernels) - (name != "vgg_small_1024x2")


def test_vgg19_has_sixteen_convolutions_and_the_mean_before_its_dense_layer():
    kernels = {layer: kernel["kernel"].shape for layer, kernel in shapes(LITERATURE["vgg19"]())["params"].items()}
    outputs = [kernels[f"Conv_{index}"][-1] for index in range(16)]
    assert outputs == [64, 64, 128, 128, *[256] * 4, *[512] * 8]
    assert kernels["Dense_0"] == (512, 10) and len(kernels) == 17


def test_the_layers_are_in_the_published_order():
    net = VGG(stages=((4, 5),), classes=3)
    found, kernels = applied(net)
    x = jax.nn.relu(norm(conv(IMAGES, kernels["Conv_0"])))
    x = jax.nn.relu(pool(norm(conv(x, kernels["Conv_1"]))))
    np.testing.assert_allclose(found, x.reshape(3, -1) @ kernels["Dense_0"], rtol=1e-4, atol=1e-4)


def test_bnns_net_normalises_after_the_pool_and_at_the_output():
    net = VGG(stages=((4, 5),), hidden=(6,), classes=3, norm_after_pool=True, norm_output=True, activation="sign")
    found, kernels = applied(net)
    x = sign(norm(conv(IMAGES, kernels["Conv_0"])))
    x = sign(norm(pool(conv(x, kernels["Conv_1"]))))
    x = sign(norm(x.reshape(3, -1) @ kernels["Dense_0"]))
    np.testing.assert_allclose(found, norm(x @ kernels["Dense_1"]), rtol=1e-4, atol=1e-4)


def test_the_mean_takes_the_place_of_the_last_pool():
    found, kernels = applied(VGG(stages=((4,), (5,)), classes=3, mean=True))
    x = jax.nn.relu(pool(norm(conv(IMAGES, kernels["Conv_0"]))))
    x = jax.nn.relu(norm(conv(x, kernels["Conv_1"])))
    np.testing.assert_allclose(found, x.mean((1, 2)) @ kernels["Dense_0"], rtol=1e-4, atol=1e-4)
