"""What the paper's networks compute, as a list of operations, for running, shrinking or exporting them without JAX.

The Flax modules in `ssm.models` are the same nets for training; tests/models/test_graph.py compares them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ssm.errors import UserError
from ssm.models import description
from ssm.models.description import BLOCKS, HIDDEN, PAIRS, Convolution

Op: TypeAlias = Literal[
    "input", "flatten", "select", "dense", "conv", "norm", "elu", "pool", "smooth_pool", "mean", "add"
]
Shape: TypeAlias = tuple[int, ...]

MOST_NUMBERS = 1 << 24  # of one image
NORMS = ("none", "frozen", "statistics", "affine")


NETS = (*HIDDEN, *BLOCKS)
"""The names of the nets that have a graph."""


class Node(NamedTuple):
    """One operation on the outputs of the nodes named in `inputs`; its layer's parameters have the same `name`.

    input: images [batch, height, width, channels].  flatten: to [batch, features].  select: features by `indices`.
    dense, conv (window x window, padded to keep the size, of a `stride`): with a kernel and without bias, `size`
    outputs.  norm: factor and offset per channel.  pool: 2x2 maxima side by side.  smooth_pool: 3x3 maxima around
    each pixel.  mean: over all pixels.  add: of two.
    """

    name: str
    op: Op
    inputs: tuple[str, ...] = ()
    size: int = 0
    window: int = 1
    stride: int = 1
    indices: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One of the paper's networks: all that determines its operations and the shapes of its kernels.

    `inputs` is [height, width, channels] of an image; the other fields are as in `ssm.recipes.config.Config`.
    Raises UserError for values that no net has.
    """

    model: str
    inputs: Shape
    classes: int
    width: float = 1.0
    projections: int = 1
    batch_norm: str = "none"
    stem_affine: bool = False

    def __post_init__(self) -> None:
        if self.model not in NETS:
            raise UserError(f"model {self.model!r} is not known; known are {', '.join(NETS)}")
        whole = isinstance(self.inputs, tuple) and all(type(size) is int for size in (*self.inputs, self.classes))
        if not whole or len(self.inputs) != 3 or min(*self.inputs, self.classes) < 1:
            raise UserError(f"{self.model}: no net has inputs {self.inputs} and {self.classes} classes")
        if min(self.inputs[:2]) >> len(PAIRS.get(self.model, ())) < 1 or math.prod(self.inputs) > MOST_NUMBERS:
            raise UserError(f"{self.model}: images of {self.inputs} are too small or too large")
        number = isinstance(self.width, int | float) and type(self.width) is not bool
        if not (number and math.isfinite(self.width) and 0 < self.width <= 1000):
            raise UserError(f"{self.model}: width {self.width} must be a finite factor above 0, at most 1000")
        if self.batch_norm not in NORMS or (self.batch_norm == "none") == (self.model in BLOCKS):
            raise UserError(f"{self.model} has no batch normalisation {self.batch_norm!r}")
        if type(self.stem_affine) is not bool:
            raise UserError(f"{self.model}: stem_affine must be true or false; got {self.stem_affine!r}")
        if self.model in BLOCKS:
            description.check_projections(self.projections, BLOCKS[self.model])
        elif type(self.projections) is not int or self.projections != 1:
            raise UserError(f"{self.model} has no residual blocks: leave projections at 1")


def architecture(setting: Callable[[str], Any], inputs: Sequence[int], classes: int) -> Architecture:
    """Return the architecture of a run; `setting` returns a value of its configuration by name."""
    names = ("model", "width", "projections", "batch_norm", "stem_affine")
    return Architecture(inputs=tuple(inputs), classes=classes, **{name: setting(name) for name in names})


def graph(net: Architecture) -> tuple[Node, ...]:
    """Return the net's operations, each after its inputs; the output of the last one is the logits."""
    nodes = [Node("input", "input")]
    if net.model in BLOCKS:
        _resnet(net, nodes)
    else:
        _feedforward(net, nodes)
    return tuple(nodes)


def kernel_shapes(nodes: Sequence[Node], inputs: Shape) -> dict[str, Shape]:
    """Return the shapes of all kernels, [in, out] or [height, width, in, out], by layer, for images of this shape."""
    shapes: dict[str, Shape] = {}
    outputs: dict[str, Shape] = {}
    for node in nodes:
        before = outputs[node.inputs[0]] if node.inputs else inputs
        if node.op == "dense":
            shapes[node.name] = (before[0], node.size)
        elif node.op == "conv":
            shapes[node.name] = (node.window, node.window, before[-1], node.size)
        outputs[node.name] = _output(node, before)
    return shapes


def _output(node: Node, before: Shape) -> Shape:
    """Return the shape of a node's output without the batch axis."""
    match node.op:
        case "flatten":
            return (math.prod(before),)
        case "select":
            return (len(node.indices),)
        case "dense":
            return (node.size,)
        case "conv":
            return (-(-before[0] // node.stride), -(-before[1] // node.stride), node.size)
        case "pool":
            return (before[0] // 2, before[1] // 2, before[2])
        case "mean":
            return (before[-1],)
        case _:
            return before


def norms(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the names of the batch normalisations."""
    return tuple(node.name for node in nodes if node.op == "norm")


def value_shapes(net: Architecture) -> dict[str, Shape]:
    """Return the shapes of the parameters and statistics beside the kernels, by `COLLECTION/LAYER/NAME`."""
    found: dict[str, Shape] = {}
    channels = {"input": net.inputs[-1]}
    for node in graph(net):
        channels[node.name] = node.size or channels.get(node.inputs[0] if node.inputs else "", channels["input"])
        if node.op != "norm":
            continue
        shape = (channels[node.inputs[0]],)
        if net.batch_norm == "affine" or (
            net.batch_norm == "frozen" and net.stem_affine and node.name == "BatchNorm_0"
        ):
            found |= {f"params/{node.name}/{name}": shape for name in ("bias", "scale")}
        if net.batch_norm != "frozen":
            found |= {f"batch_stats/{node.name}/{name}": shape for name in ("mean", "var")}
    return found


def _add(nodes: list[Node], node: Node) -> str:
    nodes.append(node)
    return node.name


def _elu(nodes: list[Node], after: str) -> str:
    return _add(nodes, Node(f"{after}:elu", "elu", (after,)))


def _feedforward(net: Architecture, nodes: list[Node]) -> None:
    last = "input"
    for first, second in description.convolution_pairs(PAIRS.get(net.model, ()), net.width):
        last = _elu(nodes, _convolve(nodes, last, first))
        last = _convolve(nodes, last, second)
        last = _elu(nodes, _add(nodes, Node(f"{last}:pool", "pool", (last,))))
    last = _add(nodes, Node("flatten", "flatten", (last,)))
    _dense(net, nodes, last, HIDDEN[net.model])


def _resnet(net: Architecture, nodes: list[Node]) -> None:
    def conv(last: str, layer: Convolution, block: str = "") -> str:
        """Add a convolution and its batch normalisation."""
        return _add(nodes, Node(block + layer.norm, "norm", (_convolve(nodes, last, layer, block),)))

    last = _elu(nodes, conv("input", description.stem(net.width)))
    last = _add(nodes, Node("stem:pool", "smooth_pool", (last,)))
    for block in description.residual_blocks(BLOCKS[net.model], net.projections, net.width):
        inner = _elu(nodes, conv(last, block.first, f"{block.name}/"))
        inner, shortcut = conv(inner, block.second, f"{block.name}/"), last
        if block.shortcut:
            inner = _elu(nodes, inner)
            shortcut = conv(last, block.shortcut, f"{block.name}/")
        last = _elu(nodes, _add(nodes, Node(f"{block.name}:sum", "add", (shortcut, inner))))
    _dense(net, nodes, _add(nodes, Node("mean", "mean", (last,))), ())


def _convolve(nodes: list[Node], last: str, layer: Convolution, block: str = "") -> str:
    return _add(nodes, Node(block + layer.name, "conv", (last,), layer.size, layer.window, layer.stride))


def _dense(net: Architecture, nodes: list[Node], last: str, hidden: Sequence[int]) -> None:
    *inner, output = description.dense_layers(hidden, net.classes, net.width)
    for layer in inner:
        last = _elu(nodes, _add(nodes, Node(layer.name, "dense", (last,), layer.size)))
    nodes.append(Node(output.name, "dense", (last,), output.size))
