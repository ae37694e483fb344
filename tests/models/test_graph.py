import jax
import jax.numpy as jnp
import pytest

from ssm.errors import UserError
from ssm.models import MODELS
from ssm.models.graph import Architecture, Node, architecture, graph, kernel_shapes, value_shapes
from ssm.runs.reader import FinishedRun
from ssm.trees import flatten

IMAGES = {"fcn": (28, 28, 1)}
NORMED = [("frozen", 1, True), ("statistics", 1, False), ("affine", 2, False)]


def nets():
    for model in MODELS:
        if model.startswith("resnet"):
            for batch_norm, projections, stem in NORMED:
                if projections == 1 or model == "resnet110":
                    yield model, {"batch_norm": batch_norm, "projections": projections, "stem_affine": stem}
        else:
            yield model, {}


@pytest.mark.parametrize(("model", "options"), list(nets()))
def test_the_operations_have_the_parameters_of_the_flax_module(model, options):
    net = Architecture(model=model, inputs=IMAGES.get(model, (32, 32, 3)), classes=10, **options)
    module = MODELS[model](classes=10, **options)
    shapes = jax.eval_shape(module.init, jax.random.key(0), jnp.zeros((1, *net.inputs)))

    leaves = {(name, *path): leaf.shape for name, tree in shapes.items() for path, leaf in flatten(tree).items()}
    kernels = {"/".join(path[1:-1]): shape for path, shape in leaves.items() if path[-1] == "kernel"}
    assert kernel_shapes(graph(net), net.inputs) == kernels
    assert value_shapes(net) == {"/".join(path): shape for path, shape in leaves.items() if path[-1] != "kernel"}


def test_the_fcn_is_a_chain():
    net = Architecture(model="fcn", inputs=(28, 28, 1), classes=10, width=0.5)
    assert graph(net) == (
        Node("input", "input"),
        Node("flatten", "flatten", ("input",)),
        Node("Dense_0", "dense", ("flatten",), size=150),
        Node("Dense_0:elu", "elu", ("Dense_0",)),
        Node("Dense_1", "dense", ("Dense_0:elu",), size=50),
        Node("Dense_1:elu", "elu", ("Dense_1",)),
        Node("Dense_2", "dense", ("Dense_1:elu",), size=10),
    )


def test_an_older_run_lacks_the_later_fields(tmp_path):
    config = {"model": "resnet20", "method": "signed", "preset": "default", "dataset": "cifar10"}
    net = architecture(FinishedRun(tmp_path, config, {}).setting, (32, 32, 3), 10)
    assert net == Architecture(model="resnet20", inputs=(32, 32, 3), classes=10, batch_norm="frozen")


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "vgg"},
        {"inputs": (28, 28)},
        {"inputs": (0, 28, 1)},
        {"inputs": (28.0, 28, 1)},
        {"classes": 0},
        {"classes": True},
        {"width": 0},
        {"width": float("nan")},
        {"width": "1"},
        {"batch_norm": "frozen"},
        {"projections": 2},
        {"stem_affine": 1},
    ],
)
def test_what_no_net_has_is_an_error(wrong):
    with pytest.raises(UserError, match=r"fcn|vgg"):
        Architecture(**{"model": "fcn", "inputs": (28, 28, 1), "classes": 10, **wrong})
