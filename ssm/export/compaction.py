"""A net without the inputs, units and channels that cannot influence its output, and with the same logits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from ssm.export.runtime import Norm, Runtime
from ssm.models.graph import Node, Shape
from ssm.models.liveness import liveness


@dataclass(frozen=True, kw_only=True, eq=False)
class Compact:
    """A smaller net: its operations and dense kernels, and what was removed.

    nodes, kernels, norms: as `Runtime` takes them; `select` takes the features that are still used.
    before, after: the shapes of all kernels.
    features: how many features of the first dense layer's flattened input are used, and of how many; None without one.
    """

    nodes: tuple[Node, ...]
    kernels: Mapping[str, Float32[np.ndarray, "..."]]
    norms: Mapping[str, Norm]
    inputs: Shape
    class_names: tuple[str, ...]
    before: Mapping[str, Shape]
    after: Mapping[str, Shape]
    features: tuple[int, int] | None

    @property
    def size(self) -> int:
        """The number of remaining dense weights."""
        return sum(int(np.prod(shape)) for shape in self.after.values())

    def runtime(self) -> Runtime:
        """Return the smaller net for inference."""
        return Runtime(self.nodes, self.kernels, self.norms, inputs=self.inputs, class_names=self.class_names)

    def report(self) -> list[tuple[str, Shape, Shape]]:
        """Return every layer's name, and its kernel's shape before and after."""
        return [(name, self.before[name], self.after[name]) for name in self.before]


def compact(
    nodes: Sequence[Node],
    kernels: Mapping[str, np.ndarray],
    norms: Mapping[str, Norm],
    *,
    inputs: Shape,
    class_names: tuple[str, ...] = (),
) -> Compact:
    """Return the net without dead inputs, units and channels; exact up to rounding in sums.

    Arguments are as in `ssm.export.runtime.Runtime`; all logits and all channels of the images are kept.
    """
    offsets = {name: np.asarray(norm.offset) != 0 for name, norm in norms.items()}
    found = liveness(nodes, kernels, offsets, inputs=inputs)
    groups = _groups(nodes)
    kept: dict[str, np.ndarray] = {}
    for node in nodes:
        live = found[node.name].live
        kept[groups[node.name]] = kept.get(groups[node.name], np.zeros_like(live)) | live
    for name in ("input", nodes[-1].name):
        kept[groups[name]][:] = True
    for channels in kept.values():
        channels[0] |= not channels.any()  # an axis must have at least one element

    def of(name: str) -> np.ndarray:
        return kept[groups[name]]

    smaller: list[Node] = []
    made: dict[str, np.ndarray] = {}
    names: dict[str, str] = {}  # the operation whose output replaces an operation's
    selected = None
    for node in nodes:
        names[node.name] = node.name
        changed = node._replace(inputs=tuple(names[name] for name in node.inputs))
        if node.op in ("dense", "conv"):
            made[node.name] = kernels[node.name][..., of(node.inputs[0]), :][..., of(node.name)]
            changed = changed._replace(size=made[node.name].shape[-1])
        smaller.append(changed)
        if node.op == "flatten":
            # Only the kept channels are flattened, so features are numbered among these.
            there = np.resize(of(node.inputs[0]), of(node.name).size)
            features = of(node.name)
            features &= there
            features[np.argmax(there)] |= not features.any()
            indices = tuple(int(index) for index in np.flatnonzero(features[there]))
            selected = len(indices), features.size
            names[node.name] = f"{node.name}:select"
            smaller.append(Node(names[node.name], "select", (node.name,), indices=indices))
    smaller_norms = {
        name: Norm(*(value if np.ndim(value) == 0 else value[of(name)] for value in norm))
        for name, norm in norms.items()
    }
    return Compact(
        nodes=tuple(smaller),
        kernels={name: np.ascontiguousarray(kernel) for name, kernel in made.items()},
        norms=smaller_norms,
        inputs=inputs,
        class_names=class_names,
        before={name: kernels[name].shape for name in made},
        after={name: kernel.shape for name, kernel in made.items()},
        features=selected,
    )


def _groups(nodes: Sequence[Node]) -> dict[str, str]:
    """Return, by operation, the name of its group: the operations that share channels."""
    group: dict[str, str] = {}
    for node in nodes:
        if node.op in ("input", "dense", "conv", "flatten"):
            group[node.name] = node.name
            continue
        group[node.name] = group[node.inputs[0]]
        for name in node.inputs[1:]:  # a sum's terms have their channels in common
            old = group[name]
            group = {each: group[node.name] if own == old else own for each, own in group.items()}
    return group
