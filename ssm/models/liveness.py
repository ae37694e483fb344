"""Which channels of a net can influence its output: the dead ones can be removed exactly.

Nets without biases: a unit without an incoming weight gives elu(0) = 0 whatever the image is, and one without an
outgoing weight has no effect.  Only a batch normalisation's offset makes a zero input nonzero.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Shaped

from ssm.models.graph import Node, Shape


class Liveness(NamedTuple):
    """Which channels of one operation's output may differ from 0, and which have a path to the logits."""

    active: Bool[np.ndarray, " channels"]
    needed: Bool[np.ndarray, " channels"]

    @property
    def live(self) -> Bool[np.ndarray, " channels"]:
        """Channels that may differ from 0 and have a path to the logits."""
        return self.active & self.needed


def liveness(
    nodes: Sequence[Node],
    kernels: Mapping[str, Shaped[np.ndarray, "..."]],
    offsets: Mapping[str, np.ndarray] | None = None,
    *,
    inputs: Shape,
) -> dict[str, Liveness]:
    """Return the liveness of every operation's output by its name.

    kernels: masks or weights by layer; only which elements are 0 matters.
    offsets: by batch normalisation, whether a channel's offset differs from 0.
    inputs: the shape of an image.  Liveness is by channel, and by feature after `flatten`.
    """
    offsets = offsets or {}
    active: dict[str, Any] = {}
    for node in nodes:
        before = [active[name] for name in node.inputs]
        match node.op:
            case "input":
                active[node.name] = np.ones(inputs[-1], bool)
            case "dense" | "conv":
                active[node.name] = links(kernels[node.name])[before[0]].any(axis=0)
            case "flatten":
                size = _flat_inputs(node, nodes, kernels) or int(np.prod(inputs))
                active[node.name] = np.resize(before[0], size)
            case "norm":
                active[node.name] = before[0] | np.resize(offsets.get(node.name, np.False_), len(before[0]))
            case "add":
                active[node.name] = before[0] | before[1]
            case _:
                active[node.name] = before[0]
    needed = {name: np.zeros_like(channels) for name, channels in active.items()}
    needed[nodes[-1].name][:] = True
    for node in reversed(nodes):
        own = needed[node.name]
        for name in node.inputs:
            if node.op in ("dense", "conv"):
                needed[name] |= links(kernels[node.name])[:, own].any(axis=1)
            elif node.op == "flatten":
                needed[name] |= own.reshape(-1, len(needed[name])).any(axis=0)
            else:
                needed[name] |= own
    return {node.name: Liveness(active[node.name], needed[node.name]) for node in nodes}


def links(kernel: Shaped[np.ndarray, "*window inputs outputs"]) -> Bool[np.ndarray, "inputs outputs"]:
    """Return which inputs have a nonzero weight to which outputs, anywhere in the window."""
    return (kernel != 0).reshape(-1, *kernel.shape[-2:]).any(axis=0)


def _flat_inputs(node: Node, nodes: Sequence[Node], kernels: Mapping[str, np.ndarray]) -> int:
    """Return the number of features of a flattened output, which the next dense layer takes."""
    return next(
        (kernels[after.name].shape[0] for after in nodes if node.name in after.inputs and after.op == "dense"), 0
    )
