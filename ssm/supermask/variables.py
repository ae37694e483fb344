"""How a Supermask's variables lie: what its learner trains and keeps, and what is the module's own."""

from typing import Any

from ssm.learners import Layers
from ssm.trees import Tree, flatten, unflatten

OWN = ("params", "frozen")  # collections that the wrapper manages; all others belong to the wrapped module


def split(variables: Tree) -> tuple[Layers, dict[str, Any], Layers, dict[str, Any]]:
    """Return the learner's params and the other trained parameters, its state and the other frozen parameters.

    `variables` are those of one `Supermask`; the first and third are by layer, the rest nested as the module's.
    """
    frozen = variables["frozen"]
    state = frozen["layers"]
    others = dict(flatten(variables["params"].get("net", {})))
    layers: dict[str, Any] = {}
    for path in state:
        keys = tuple(path.split("/"))
        # A learner may train several values of a layer, as a dictionary at the kernel's place.
        below = [key for key in others if key[: len(keys)] == keys]
        leaves = {key[len(keys) :]: others.pop(key) for key in below}
        layers[path] = leaves[()] if () in leaves else unflatten(leaves)
    return layers, unflatten(others), state, frozen.get("net", {})


def joined(layers: Layers, *others: Tree) -> dict[str, Any]:
    """Return values by layer and other parameters as one tree, nested as the module's params."""
    leaves = {path: leaf for tree in others for path, leaf in flatten(tree).items()}
    return unflatten(leaves | {tuple(path.split("/")): value for path, value in layers.items()})
