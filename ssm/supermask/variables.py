"""How a Supermask's variables lie: what its learner trains and keeps, and what is the module's own."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax.core import meta
from jax import Array

from ssm.errors import UserError
from ssm.learners import Layers
from ssm.paths import name_path
from ssm.trees import Tree, flatten, unflatten

OWN = ("params", "frozen")  # collections that the wrapper manages; all others belong to the wrapped module


def split(variables: Tree) -> tuple[Layers, dict[str, Any], Layers, dict[str, Any]]:
    """Return the learner's params and the other trained parameters, its state and the other frozen parameters.

    `variables` are those of one `Supermask`; the first and third are by layer, the rest nested as the module's.
    Partitioning metadata is taken off.  Raises UserError where they are no Supermask's.
    """
    frozen = _frozen(variables)
    state = meta.unbox(frozen["layers"])
    others = dict(flatten(meta.unbox(variables.get("params", {}).get("net", {}))))
    layers: dict[str, Any] = {}
    for name in state:
        keys = name_path(name)
        # A learner may train several values of a layer, as a dictionary at the kernel's place.
        below = [key for key in others if key[: len(keys)] == keys]
        leaves = {key[len(keys) :]: others.pop(key) for key in below}
        layers[name] = leaves[()] if () in leaves else unflatten(leaves)
    return layers, unflatten(others), state, meta.unbox(frozen.get("net", {}))


def joined(layers: Layers, *others: Tree) -> dict[str, Any]:
    """Return values by layer and other parameters as one tree, nested as the module's params."""
    leaves = {path: leaf for tree in others for path, leaf in flatten(tree).items()}
    return unflatten(leaves | {name_path(name): value for name, value in layers.items()})


def assembled(
    layers: Layers, trained: Tree, state: Layers, frozen: Tree, collections: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the variables of a Supermask from what `split` and `module_collections` make of them."""
    own = {"own": collections["frozen"]} if "frozen" in collections else {}
    return {
        "params": {"net": joined(layers, trained)},
        "frozen": {"layers": state, "net": frozen, "axes": jnp.zeros((), jnp.int8), **own},
        **{name: {"net": tree} for name, tree in collections.items() if name not in OWN},
    }


def module_collections(variables: Tree) -> dict[str, Any]:
    """Return the wrapped module's other collections, under its own names."""
    found = {name: tree["net"] for name, tree in variables.items() if name not in OWN and "net" in tree}
    own = variables.get("frozen", {}).get("own")
    return found if own is None else {**found, "frozen": own}


def stacked_axes(variables: Tree) -> tuple[int, ...]:
    """Return the lengths of the leading axes that `jax.vmap` over `init` has stacked: () for one seed's variables."""
    return tuple(getattr(_frozen(variables).get("axes"), "shape", ()))


def check_single(variables: Tree, advice: str) -> None:
    """Raise UserError, with what to do, where variables are of stacked seeds and not of one."""
    if axes := stacked_axes(variables):
        raise UserError(f"these variables are of {' x '.join(map(str, axes))} stacked seeds{advice}")


def over_axes(function: Callable[..., Any], axes: tuple[int, ...]) -> Callable[..., Any]:
    """Return a function of one seed's values as one of stacked values."""
    for _ in axes:
        function = jax.vmap(function)
    return function


def check_keys(key: Array | None, axes: tuple[int, ...]) -> None:
    """Raise UserError unless there is a key for each of the stacked seeds, or none at all."""
    if key is not None and key.shape[: len(axes)] != axes:
        raise UserError(
            f"the variables are of {' x '.join(map(str, axes))} stacked seeds: give a key for each, such as "
            f"jax.random.split(key, {axes[0]})"
        )


def _frozen(variables: Tree) -> Tree:
    frozen = variables.get("frozen", {}) if isinstance(variables, Mapping) else {}
    if "layers" not in frozen:
        raise UserError(
            "these are not the variables of a Supermask: pass all that its `init` returned, with the collections "
            "`params` and `frozen`"
        )
    return frozen
