"""Artefacts for other programs: safetensors, and ONNX of the full or the compacted net."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ssm.errors import UserError
from ssm.export.artifact import Artifact
from ssm.export.runtime import Norm
from ssm.files import plain
from ssm.models.graph import Node, graph

OPSET = 18
IR_VERSION = 10  # contemporary with opset 18: older runtimes refuse newer ones


def to_safetensors(artifact: Artifact) -> bytes:
    """Return a safetensors file of the effective weights, float32 by layer, and the other values.

    Kernels are `LAYER/kernel`, [in, out] or [height, width, in, out]; the metadata has the artefact's `about`.
    """
    from safetensors.numpy import save

    tensors = {f"{name}/kernel": kernel for name, kernel in artifact.to_dense().items()} | dict(artifact.values)
    about = {name: text if isinstance(text, str) else json.dumps(plain(text)) for name, text in artifact.about.items()}
    about |= {"class_names": json.dumps(list(artifact.class_names)), "preprocessing": "per_image_standardization"}
    return save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, about)


def to_onnx(artifact: Artifact, *, compacted: bool = False, standardizes: bool = True) -> bytes:
    """Return an ONNX model: images float32 [n, height, width, channels], 0 to 255, to logits [n, classes].

    It standardises the images itself, or takes standardised ones if `standardizes` is False.  `compacted` leaves out
    what cannot influence the logits.

    Raises:
        UserError: if the package onnx is missing, or the net is the user's own module.
    """
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError:
        raise UserError("ONNX files need the package onnx: pip install 'signed-supermask[onnx]'") from None
    net = artifact.known()
    if compacted:
        small = artifact.compact()
        nodes, kernels, norms = small.nodes, small.kernels, small.norms
    else:
        nodes, kernels, norms = graph(net), artifact.to_dense(), artifact.norms()
    writer = _Writer(helper.make_node)
    writer.begin(net.inputs, standardizes=standardizes)
    for node in nodes[1:]:
        writer.add(node, kernels, norms)
    writer.finish(nodes[-1].name)
    kind = onnx.TensorProto.FLOAT
    model = helper.make_model(
        helper.make_graph(
            writer.nodes,
            net.model,
            [helper.make_tensor_value_info("images", kind, ["n", *net.inputs])],
            [helper.make_tensor_value_info("logits", kind, ["n", net.classes])],
            [numpy_helper.from_array(array, name) for name, array in writer.constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="signed-supermask",
    )
    helper.set_model_props(model, {"class_names": json.dumps(list(artifact.class_names))})
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


class _Writer:
    """Collects ONNX nodes and constants; convolutions work on [n, channels, height, width]."""

    def __init__(self, make_node: Callable[..., Any]) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self._make = make_node
        self._last: dict[str, str] = {}
        self._channels_first = False

    def begin(self, inputs: tuple[int, ...], *, standardizes: bool) -> None:
        """Add the operations that turn `images` into the node `input`."""
        self._last["input"] = self._standardized(inputs) if standardizes else "images"

    def _standardized(self, inputs: tuple[int, ...]) -> str:
        axes, least = self._constant("axes", np.asarray([1, 2, 3])), np.asarray(1 / np.sqrt(np.prod(inputs)))
        mean = self._node("ReduceMean", ["images", axes], keepdims=1)
        centred = self._node("Sub", ["images", mean])
        variance = self._node("ReduceMean", [self._node("Mul", [centred, centred]), axes], keepdims=1)
        deviation = self._node("Max", [self._node("Sqrt", [variance]), self._constant("least", least)])
        return self._node("Div", [centred, deviation])

    def add(self, node: Node, kernels: Mapping[str, np.ndarray], norms: Mapping[str, Norm]) -> None:
        """Add one of the net's operations."""
        inputs = [self._last[name] for name in node.inputs]
        match node.op:
            case "flatten":
                if self._channels_first:
                    inputs = [self._node("Transpose", inputs, perm=[0, 2, 3, 1])]
                made = self._node("Flatten", inputs, axis=1)
            case "select":
                made = self._node(
                    "Gather", [*inputs, self._constant(f"{node.name}/indices", np.asarray(node.indices))], axis=1
                )
            case "dense":
                made = self._node("MatMul", [*inputs, self._constant(f"{node.name}/kernel", kernels[node.name])])
            case "conv":
                if not self._channels_first:
                    inputs = [self._node("Transpose", inputs, perm=[0, 3, 1, 2])]
                    self._channels_first = True
                kernel = np.ascontiguousarray(kernels[node.name].transpose(3, 2, 0, 1))
                options = {"strides": [node.stride] * 2, "pads": [node.window // 2] * 4}
                made = self._node("Conv", [*inputs, self._constant(f"{node.name}/kernel", kernel)], **options)
            case "norm":
                factor, offset = (np.asarray(value, np.float32).reshape(-1, 1, 1) for value in norms[node.name])
                scaled = self._node("Mul", [*inputs, self._constant(f"{node.name}/factor", factor)])
                made = self._node("Add", [scaled, self._constant(f"{node.name}/offset", offset)])
            case "pool":
                made = self._node("MaxPool", inputs, kernel_shape=[2, 2], strides=[2, 2])
            case "smooth_pool":
                made = self._node("MaxPool", inputs, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            case "mean":
                made = self._node("ReduceMean", [*inputs, self._constant("pixels", np.asarray([2, 3]))], keepdims=0)
            case _:
                made = self._node({"elu": "Elu", "add": "Add"}[node.op], inputs)
        self._last[node.name] = made

    def finish(self, last: str) -> None:
        """Name the output of the last operation."""
        self.nodes.append(self._make("Identity", [self._last[last]], ["logits"]))

    def _node(self, op: str, inputs: Sequence[str], **options: Any) -> str:
        name = f"{op}:{len(self.nodes)}"  # which no layer is named
        self.nodes.append(self._make(op, list(inputs), [name], name=name, **options))
        return name

    def _constant(self, name: str, array: np.ndarray) -> str:
        self.constants[name] = np.asarray(array, np.int64 if np.asarray(array).dtype.kind == "i" else np.float32)
        return name
