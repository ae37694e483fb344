import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssm.export.compaction import compact
from ssm.export.runtime import Norm, Runtime
from ssm.models.graph import Architecture, graph, kernel_shapes, norms, value_shapes


def kernels(net, rng, density):
    """Ternary kernels, and offsets of batch normalisation on some channels."""
    shapes = kernel_shapes(graph(net), net.inputs)
    drawn = {name: rng.choice([-0.5, 0.5], shape) * (rng.random(shape) < density) for name, shape in shapes.items()}
    channels = {name.split("/", 1)[1].rsplit("/", 1)[0]: shape for name, shape in value_shapes(net).items()}
    affine = {
        name: Norm(
            rng.random(channels[name], np.float32),
            rng.random(channels[name], np.float32) * (rng.random(channels[name]) < 0.2),
        )
        if name in channels
        else Norm(np.float32(0.9), np.float32(0))
        for name in norms(graph(net))
    }
    return {name: kernel.astype(np.float32) for name, kernel in drawn.items()}, affine


def test_dead_inputs_and_units_by_hand():
    net = Architecture(model="fcn", inputs=(1, 4, 1), classes=2, width=0.02)  # 4 - 6 - 2 - 2
    masks = {
        "Dense_0": np.asarray([[0, 1, 0, 0, 0, 0], [0, -1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]]),
        "Dense_1": np.asarray([[1, 0], [-1, 0], [0, 0], [0, 1], [0, 0], [0, 0]]),
        "Dense_2": np.asarray([[1, 0], [0, 1]]),
    }
    small = compact(graph(net), {name: mask.astype(np.float32) for name, mask in masks.items()}, {}, inputs=net.inputs)
    assert small.report() == [
        ("Dense_0", (4, 6), (2, 1)),
        ("Dense_1", (6, 2), (1, 1)),
        ("Dense_2", (2, 2), (1, 2)),
    ]
    assert (small.features, small.size) == ((2, 4), 5)
    np.testing.assert_array_equal(small.kernels["Dense_0"], [[1], [-1]])
    # Logit 1 has no input, and stays: a net has as many logits as classes.
    np.testing.assert_allclose(
        small.runtime()(np.asarray([3, 1, 7, -7], np.float32).reshape(1, 1, 4, 1)), [[np.exp(-2) - 1, 0]]
    )


@pytest.mark.parametrize(
    ("model", "options"),
    [("fcn", {}), ("conv2", {}), ("resnet20", {"batch_norm": "frozen"}), ("resnet20", {"batch_norm": "affine"})],
)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), density=st.sampled_from([0, 0.003, 0.02, 0.1, 0.5, 1]))
def test_a_smaller_net_computes_the_same(model, options, seed, density):
    net = Architecture(model=model, inputs=(6, 6, 2), classes=3, width=0.2, **options)
    rng = np.random.default_rng(seed)
    weights, own = kernels(net, rng, density)
    small = compact(graph(net), weights, own, inputs=net.inputs)
    images = rng.normal(size=(3, *net.inputs)).astype(np.float32)
    wanted = Runtime(graph(net), weights, own, inputs=net.inputs)(images)
    np.testing.assert_allclose(small.runtime()(images), wanted, atol=1e-5 * (1 + np.abs(wanted).max()))
    assert all(0 < after <= before for _, *both in small.report() for before, after in zip(*both, strict=True))
    if density == 1:
        assert small.before == small.after
