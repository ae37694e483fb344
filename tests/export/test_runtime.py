import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.data.standardize import standardize, statistics
from ssm.errors import UserError
from ssm.export import runtime
from ssm.export.runtime import Norm, Runtime, elu
from ssm.models import MODELS
from ssm.models.graph import Architecture, graph
from ssm.trees import flatten


def test_elu_by_hand():
    x = np.asarray([-np.inf, -1, -0.0, 0, 2], np.float32)
    np.testing.assert_allclose(elu(x), [-1, np.exp(-1) - 1, 0, 0, 2], rtol=1e-6)


def test_images_are_standardised_as_training_does():
    rng = np.random.default_rng(0)
    images = np.stack([*rng.integers(0, 256, (4, 5, 6, 3), np.uint8), np.full((5, 6, 3), 7, np.uint8)])
    wanted = standardize(jnp.asarray(images), *statistics(images))
    np.testing.assert_allclose(runtime.standardize(images), wanted, atol=1e-6)
    assert not runtime.standardize(images)[-1].any()


def test_a_dense_net_by_hand():
    net = Architecture(model="fcn", inputs=(1, 2, 1), classes=2, width=0.01)  # hidden: 3 and 1
    kernels = {
        "Dense_0": np.asarray([[1, 0, -1], [2, 0, 0]], np.float32),
        "Dense_1": np.asarray([[1], [5], [1]], np.float32),
        "Dense_2": np.asarray([[3, -3]], np.float32),
    }
    run = Runtime(graph(net), kernels, {}, inputs=net.inputs)
    images = np.asarray([[3, -1], [4, -1]], np.float32).reshape(2, 1, 2, 1)
    hidden = np.asarray([1 + np.exp(-3) - 1, 2 + np.exp(-4) - 1])  # one unit is 0, one below
    np.testing.assert_allclose(run(images), np.stack([3 * hidden, -3 * hidden], 1), rtol=1e-6)
    np.testing.assert_array_equal(run(images[:1]), run(images)[:1])
    assert run.activations(images)["Dense_1"].shape == (2, 1)


@pytest.mark.parametrize("sparse", [(0, 0), (0, 2), (2, 2)])  # no layer sparse, those of a batch, or every one
@pytest.mark.parametrize(("model", "options"), [("fcn", {}), ("conv2", {}), ("resnet20", {"batch_norm": "affine"})])
def test_the_flax_module_computes_the_same(model, options, sparse, monkeypatch):
    monkeypatch.setattr(runtime, "SPARSE_BELOW", sparse[0])
    monkeypatch.setattr(runtime, "SPARSE_BATCH_BELOW", sparse[1])
    monkeypatch.setattr(runtime, "BLOCK_BYTES", 1)  # one image after another
    net = Architecture(model=model, inputs=(12, 10, 3), classes=4, width=0.25, **options)
    module = MODELS[model](classes=4, width=0.25, **options)
    rng = np.random.default_rng(0)
    images = rng.normal(size=(3, *net.inputs)).astype(np.float32)
    shapes = jax.eval_shape(module.init, jax.random.key(0), images)

    def draw(leaf):  # scales and statistics above 0, off their first values
        return rng.normal(size=leaf.shape) / leaf.size**0.25 if len(leaf.shape) > 1 else 0.5 + rng.random(leaf.shape)

    variables = jax.tree.map(lambda leaf: draw(leaf).astype(np.float32), shapes)
    leaves = {(name, *path): leaf for name, tree in variables.items() for path, leaf in flatten(tree).items()}
    kernels = {"/".join(path[1:-1]): leaf for path, leaf in leaves.items() if path[-1] == "kernel"}

    def norm(name):
        def value(collection, what):
            return leaves[(collection, *name.split("/"), what)]

        factor = value("params", "scale") / np.sqrt(value("batch_stats", "var") + np.float32(1e-3))
        return Norm(factor, value("params", "bias") - value("batch_stats", "mean") * factor)

    norms = {node.name: norm(node.name) for node in graph(net) if node.op == "norm"}
    run = Runtime(graph(net), kernels, norms, inputs=net.inputs)
    wanted = np.asarray(jax.jit(module.apply)(variables, images))
    np.testing.assert_allclose(run(images), wanted, atol=3e-6 * np.abs(wanted).max())


def test_bad_images_and_kernels_are_said():
    net = Architecture(model="fcn", inputs=(1, 2, 1), classes=2, width=0.01)
    with pytest.raises(UserError, match="no kernel of Dense_0"):
        Runtime(graph(net), {}, {}, inputs=net.inputs)
    kernels = {
        name: np.ones(shape, np.float32)
        for name, shape in [("Dense_0", (2, 3)), ("Dense_1", (3, 1)), ("Dense_2", (1, 2))]
    }
    run = Runtime(graph(net), kernels, {}, inputs=net.inputs)
    for images in (np.ones((1, 2, 1, 1), np.float32), np.ones((1, 1, 2, 1)), np.ones((0, 1, 2, 1), np.float32)):
        with pytest.raises(UserError, match="this net takes float32"):
            run(images)


def test_no_jax_is_imported():
    modules = "ssm.export.runtime, ssm.export.serialization, ssm.export.compaction, ssm.analysis"
    code = f"import sys, ssm, {modules}; ssm.load; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
