import numpy as np

from ssm.analysis import Flow, flow
from ssm.models.graph import Architecture, Node, graph
from ssm.models.liveness import liveness

FCN = Architecture(model="fcn", inputs=(1, 4, 1), classes=2, width=0.02)  # 4 - 6 - 2 - 2
MASKS = {
    # Input 3 goes nowhere; unit 0 has no input, unit 1 leads on, unit 2 leads nowhere, the others are empty.
    "Dense_0": np.asarray([[0, 1, 0, 0, 0, 0], [0, -1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]], np.int8),
    "Dense_1": np.asarray([[1, 0], [-1, 0], [0, 0], [0, 1], [0, 0], [0, 0]], np.int8),
    "Dense_2": np.asarray([[1, 0], [0, 1]], np.int8),
}


def test_dead_units_of_a_dense_net_by_hand():
    found = liveness(graph(FCN), MASKS, inputs=FCN.inputs)
    np.testing.assert_array_equal(found["Dense_0"].active, [False, True, True, False, False, False])
    np.testing.assert_array_equal(found["Dense_0"].needed, [True, True, False, True, False, False])
    np.testing.assert_array_equal(found["flatten"].live, [True, True, False, False])
    np.testing.assert_array_equal(found["Dense_2"].active, [True, False])  # logit 1 hangs on an empty unit


def test_flow_by_hand():
    assert flow(MASKS, FCN) == Flow(2, {"Dense_0": 5, "Dense_1": 1, "Dense_2": 1}, ())


def test_a_layer_of_zeros_has_no_path_and_cuts_all_others_off():
    masks = MASKS | {"Dense_1": np.zeros((6, 2), np.int8)}
    assert flow(masks, FCN) == Flow(4, {"Dense_0": 6, "Dense_1": 2, "Dense_2": 2}, ("Dense_0", "Dense_1", "Dense_2"))


def test_an_offset_makes_something_of_nothing_and_a_shortcut_goes_around():
    nodes = (
        Node("input", "input"),
        Node("a", "conv", ("input",), size=2),
        Node("norm", "norm", ("a",)),
        Node("b", "conv", ("norm",), size=2),
        Node("sum", "add", ("a", "b")),
        Node("mean", "mean", ("sum",)),
        Node("out", "dense", ("mean",), size=1),
    )
    kernels = {
        "a": np.asarray([[[[1, 0]]]]),
        "b": np.asarray([[[[0, 0], [0, 1]]]]),
        "out": np.asarray([[1], [1]]),
    }
    found = liveness(nodes, kernels, {"norm": np.asarray([False, True])}, inputs=(3, 3, 1))
    np.testing.assert_array_equal(found["a"].active, [True, False])
    np.testing.assert_array_equal(found["norm"].active, [True, True])
    np.testing.assert_array_equal(found["norm"].needed, [False, True])
    np.testing.assert_array_equal(found["sum"].live, [True, True])
    assert not liveness(nodes, kernels, inputs=(3, 3, 1))["sum"].active[1]


def test_flattened_channels_by_hand():
    nodes = (
        Node("input", "input"),
        Node("a", "conv", ("input",), size=2),
        Node("flatten", "flatten", ("a",)),
        Node("out", "dense", ("flatten",), size=1),
    )
    kernels = {"a": np.asarray([[[[1, 0]]]]), "out": np.asarray([[0], [1], [1], [0]])}  # (pixel, channel): 00 01 10 11
    found = liveness(nodes, kernels, inputs=(1, 2, 1))
    np.testing.assert_array_equal(found["flatten"].active, [True, False, True, False])
    np.testing.assert_array_equal(found["flatten"].live, [False, False, True, False])
    np.testing.assert_array_equal(found["a"].live, [True, False])
