"""What the paper's networks compute, as a list of operations: for those who run, shrink or export them without JAX.

The Flax modules in `ssm.models` are the same nets for training; tests/models/test_graph.py compares them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ssm.errors import UserError
from ssm.recipes.presets import BLOCKS

Op: TypeAlias = Literal[
    "input", "flatten", "select", "dense", "conv", "norm", "elu", "pool", "smooth_pool", "mean", "add"
]
Shape: TypeAlias = tuple[int, ...]

PAIRS = {"conv2": (64,), "conv4": (64, 128), "conv6": (64, 128, 256), "conv8": (64, 128, 256, 512)}
HIDDEN = {"fcn": (300, 100), **dict.fromkeys(PAIRS, (256, 256))}
FILTERS = (16, 32, 64)
EPSILON = 1e-3  # of batch normalisation
MOST_NUMBERS = 1 << 24  # of one image
NORMS = ("none", "frozen", "statistics", "affine")


class Node(NamedTuple):
    """One operation on the outputs of the nodes named in `inputs`; `name` is also that of its layer's parameters.

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
    """One of the paper's networks: all that decides its operations and the shapes of its kernels.

    `inputs` is [height, width, channels] of an image; the other fields are those of `ssm.recipes.config.Config`.
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
        known = (*HIDDEN, *BLOCKS)
        if self.model not in known:
            raise UserError(f"model {self.model!r} is not known; known are {', '.join(known)}")
        whole = isinstance(self.inputs, tuple) and all(type(size) is int for size in (*self.inputs, self.classes))
        if not whole or len(self.inputs) != 3 or min(*self.inputs, self.classes) < 1:
            raise UserError(f"{self.model}: no net of inputs {self.inputs} and {self.classes} classes")
        if min(self.inputs[:2]) >> len(PAIRS.get(self.model, ())) < 1 or math.prod(self.inputs) > MOST_NUMBERS:
            raise UserError(f"{self.model}: images of {self.inputs} are too small or too large")
        number = isinstance(self.width, int | float) and type(self.width) is not bool
        if not (number and math.isfinite(self.width) and 0 < self.width <= 1000):
            raise UserError(f"{self.model}: width {self.width} is no factor above 0")
        if self.batch_norm not in NORMS or (self.batch_norm == "none") == (self.model in BLOCKS):
            raise UserError(f"{self.model} has no batch normalisation {self.batch_norm!r}")
        if type(self.stem_affine) is not bool or type(self.projections) is not int:
            raise UserError(f"{self.model}: stem_affine {self.stem_affine!r}, projections {self.projections!r}")
        if not 1 <= self.projections <= BLOCKS.get(self.model, 1):
            raise UserError(f"{self.model} has no {self.projections} projection blocks in a stage")

    def scaled(self, size: int) -> int:
        """Return a layer's size times `width`, rounded, at least 1."""
        return max(1, round(size * self.width))


def architecture(setting: Callable[[str], Any], inputs: Sequence[int], classes: int) -> Architecture:
    """Return the architecture of a run, of which `setting` gives the configuration's values by name."""
    names = ("model", "width", "projections", "batch_norm", "stem_affine")
    return Architecture(inputs=tuple(inputs), classes=classes, **{name: setting(name) for name in names})


def graph(net: Architecture) -> tuple[Node, ...]:
    """Return the net's operations, each after those that it needs; the last one's output are the logits."""
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


def _then(nodes: list[Node], node: Node) -> str:
    nodes.append(node)
    return node.name


def _elu(nodes: list[Node], after: str) -> str:
    return _then(nodes, Node(f"{after}:elu", "elu", (after,)))


def _feedforward(net: Architecture, nodes: list[Node]) -> None:
    last, number = "input", 0
    for size in PAIRS.get(net.model, ()):
        for then in (None, "pool"):
            conv = Node(f"Conv_{number}", "conv", (last,), size=net.scaled(size), window=3)
            last = _then(nodes, conv)
            if then:
                last = _then(nodes, Node(f"{last}:pool", "pool", (last,)))
            last, number = _elu(nodes, last), number + 1
    last = _then(nodes, Node("flatten", "flatten", (last,)))
    for number, size in enumerate(HIDDEN[net.model]):
        last = _elu(nodes, _then(nodes, Node(f"Dense_{number}", "dense", (last,), size=net.scaled(size))))
    nodes.append(Node(f"Dense_{len(HIDDEN[net.model])}", "dense", (last,), size=net.classes))


def _resnet(net: Architecture, nodes: list[Node]) -> None:
    blocks = BLOCKS[net.model]
    projected = {index * blocks // net.projections for index in range(net.projections)}

    def conv(last: str, name: str, size: int, window: int, stride: int = 1) -> str:
        """Add a convolution and its batch normalisation, BatchNorm_N for Conv_N."""
        node = Node(name, "conv", (last,), size=size, window=window, stride=stride)
        return _then(nodes, Node(name.replace("Conv_", "BatchNorm_"), "norm", (_then(nodes, node),)))

    last = _elu(nodes, conv("input", "Conv_0", net.scaled(FILTERS[0]), 3))
    last = _then(nodes, Node("stem:pool", "smooth_pool", (last,)))
    for stage, size in enumerate(map(net.scaled, FILTERS)):
        for index in range(blocks):
            project = index in projected
            stride = 2 if project and stage > 0 else 1
            block = f"Block_{stage * blocks + index:02d}"
            inner = _elu(nodes, conv(last, f"{block}/Conv_0", size, 1 if project else 3, stride))
            inner, shortcut = conv(inner, f"{block}/Conv_1", size, 3), last
            if project:
                inner = _elu(nodes, inner)
                shortcut = conv(last, f"{block}/Conv_2", size, 1, stride)
            last = _elu(nodes, _then(nodes, Node(f"{block}:sum", "add", (shortcut, inner))))
    last = _then(nodes, Node("mean", "mean", (last,)))
    nodes.append(Node("Dense_0", "dense", (last,), size=net.classes))
