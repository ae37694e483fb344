"""What the weights that remain lead to: what can't influence the output, and which units one logit comes from."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

from ssm.errors import UserError
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


Matrix = Float[np.ndarray, "inputs outputs"]
Vector = Float[np.ndarray, " units"]


def contributions(kernels: Sequence[Matrix], image: Vector, *, output: int) -> list[Vector]:
    """Return by how much one logit falls when a pixel or a unit alone is set to 0: of the image, then of every layer.

    With a_0 the image, a_l = elu(a_l-1 W_l) and f_l(a_l) the logit as the layers after l make it:

        c_l,j = f_l(a_l) - f_l(a_l with a_l,j = 0)

    In the last hidden layer that is a_j w_j, and their sum is the logit itself; before it, as ELU is no straight line,
    the sum is another number.

    kernels: the effective weights of all layers, [in, out], ELU between them and no biases.  image: standardised.

    Raises:
        UserError: for a raw image, of whole numbers.
    """
    if not np.issubdtype(np.asarray(image).dtype, np.floating):
        raise UserError(
            f"the image is {np.asarray(image).dtype}, expected a standardised one: ssm.data.standardized(images)"
        )
    from ssm.export.runtime import (
        elu,  # with SciPy's sparse arrays, half a second, which most callers need not wait for
    )

    values = np.asarray(image, np.float64)
    found = []
    for place, (kernel, leads) in enumerate(zip(kernels, _leads(kernels, output), strict=True)):
        rest, whole = kernels[place + 1 :], values @ kernel
        without = whole - values[:, None] * kernel  # a row for each unit that is left out
        # Exactly 0 where nothing can be: a sum of many numbers is rounded otherwise in a matrix than in a vector.
        falls = (values != 0) & leads
        found.append(np.where(falls, _logit(whole, rest, output) - _logit(without, rest, output), 0))
        values = elu(whole)
    return found


def carriers(contribution: Vector, *, share: float = 0.9) -> int:
    """Return how few units have at least this share of all contributions, by their absolute values."""
    sizes = np.sort(np.abs(contribution))[::-1]
    if not sizes.any():
        return 0
    return int(np.argmax(np.cumsum(sizes) >= share * sizes.sum() * (1 - 1e-12))) + 1


def _leads(kernels: Sequence[Matrix], output: int) -> list[Bool[np.ndarray, " units"]]:
    """Return for the inputs of every layer whether there is a way to one output."""
    there = np.arange(kernels[-1].shape[1]) == output
    found = []
    for kernel in reversed(kernels):
        there = (kernel[:, there] != 0).any(axis=1)
        found.append(there)
    return found[::-1]


def _logit(before: np.ndarray, kernels: Sequence[Matrix], output: int) -> np.ndarray:
    """Return a logit from what a layer makes before its ELU, [units] or [n, units], and the layers after it."""
    from ssm.export.runtime import elu

    for kernel in kernels:
        before = elu(before) @ kernel
    return before[..., output]
