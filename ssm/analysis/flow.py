"""What of a masked net can't influence its output: dead inputs, dead units, layers without a path."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Shaped

from ssm.models.graph import Architecture, graph
from ssm.models.liveness import links, liveness


class Flow(NamedTuple):
    """Of one net.

    dead_inputs: pixels of a net that begins with a dense layer, channels of the images of one that begins with a
        convolution, from which no path of weights that are not 0 leads to a logit.
    dead_units: by layer, outputs (channels of a convolution) that no path from an input to a logit goes through; of
        the last layer, logits that no input reaches.
    pathless: layers without a weight on such a path.  A residual net may do without some, a chain without none.
    """

    dead_inputs: int
    dead_units: dict[str, int]
    pathless: tuple[str, ...]


def flow(
    masks: Mapping[str, Shaped[np.ndarray, "..."]],
    net: Architecture,
    *,
    offsets: Mapping[str, Bool[np.ndarray, "..."]] | None = None,
) -> Flow:
    """Return what is dead in one seed's net, from its masks (or weights) by layer.

    offsets: by batch normalisation, whether a channel's offset differs from 0, which makes something of nothing.

    A unit is dead if it has no path of weights m != 0 from an input, or none to a logit: without biases it is 0
    whatever the image, or never seen.
    """
    nodes = graph(net)
    found = liveness(nodes, masks, offsets, inputs=net.inputs)
    first = nodes[1]
    inputs = found[first.name if first.op == "flatten" else "input"].live
    layers = [node for node in nodes if node.op in ("dense", "conv")]
    dead = {node.name: int(np.count_nonzero(~found[node.name].live)) for node in layers}
    pathless = tuple(
        node.name
        for node in layers
        if not links(masks[node.name])[found[node.inputs[0]].active][:, found[node.name].needed].any()
    )
    return Flow(int(np.count_nonzero(~inputs)), dead, pathless)
