"""Hidden units that are dead for good, and a state's arrays without them: what a compiled program does with units.

A unit that is not fed (all its incoming masks are 0) puts out f(0) = 0, so its outgoing scores get no gradient; one
that is not used gets a cotangent of 0, so its incoming scores get none.  Neither fed nor used, and no score on the way
to a threshold: it never returns, and everything else is computed as if it were not there.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool

from ssm.learners import Layers
from ssm.supermask import Supermask
from ssm.training.step import State, is_params
from ssm.training.task import Hidden

Sizes: TypeAlias = tuple[tuple[str, int], ...]
"""How many units of each hidden layer are trained, by its name; () stands for all of all."""


def live_units(hidden: Hidden, net: Supermask, state: State, *, transposed: bool) -> dict[str, Bool[Array, " units"]]:
    """Return which units of a seed's state are not dead for good, by layer."""
    assert net.learner.settled is not None
    reach = hidden.reach(state.optimizer).layers
    settled = net.learner.settled(state.params.layers, state.learner, reach)
    found: dict[str, Array] = {}
    for path, still in settled.items():
        for layer, axis in unit_axes(hidden, path, still.ndim, transposed=transposed).items():
            dead = jnp.all(still, axis=tuple(other for other in range(still.ndim) if other != axis))
            found[layer] = found.get(layer, True) & dead
    return {layer: ~dead for layer, dead in found.items()}


def narrowed(hidden: Hidden, state: State, sizes: Sizes, *, transposed: bool) -> State:
    """Return a seed's state with only the first so many units of each layer."""

    def part(path: str, leaf: Array) -> Array:
        return leaf[_prefix(hidden, path, leaf.ndim, sizes, transposed=transposed)] if leaf.ndim > 1 else leaf

    return _of_layers(part, state)


def with_first(hidden: Hidden, whole: State, part: State, sizes: Sizes, *, transposed: bool) -> State:
    """Return a seed's state in which the first so many units of each layer are those of `part`."""

    def joined(path: str, own: Array, leaf: Array) -> Array:
        if leaf.ndim < 2:
            return own
        return leaf.at[_prefix(hidden, path, leaf.ndim, sizes, transposed=transposed)].set(own)

    return _of_layers(joined, part, whole)


def reordered(hidden: Hidden, state: State, orders: Mapping[str, Array], *, transposed: bool) -> State:
    """Return a seed's state with each layer's units in another order: at place i that which was at orders[layer][i]."""

    def turned(path: str, leaf: Array) -> Array:
        if leaf.ndim > 1:
            for layer, axis in unit_axes(hidden, path, leaf.ndim, transposed=transposed).items():
                leaf = jnp.take(leaf, orders[layer], axis=axis)
        return leaf

    return _of_layers(turned, state)


def unit_axes(hidden: Hidden, path: str, rank: int, *, transposed: bool) -> dict[str, int]:
    """Return the axis of a kernel, as it is trained, along which a layer's units lie, by layer."""
    turned = transposed and rank == 2
    outputs, inputs = (0, 1) if turned else (rank - 1, rank - 2)
    found = {layer: outputs for layer, units in hidden.units.items() if path in units.fed}
    return found | {layer: inputs for layer, units in hidden.units.items() if path in units.used}


def _prefix(hidden: Hidden, path: str, rank: int, sizes: Sizes, *, transposed: bool) -> tuple[slice, ...]:
    axes = unit_axes(hidden, path, rank, transposed=transposed)
    ends = {axes[layer]: size for layer, size in sizes if layer in axes}
    return tuple(slice(ends.get(axis)) for axis in range(rank))


def _of_layers(function: Callable[..., Array], state: State, *others: State) -> State:
    """Map a function of a layer's path and its arrays over all that a state, and others like it, have of the layers."""

    def layers(own: Layers, *more: Layers) -> dict[str, Any]:
        return {
            path: jax.tree.map(partial(function, path), value, *(one[path] for one in more))
            for path, value in own.items()
        }

    def optimizer(node: Any, *more: Any) -> Any:
        return node._replace(layers=layers(node.layers, *(one.layers for one in more))) if is_params(node) else node

    return state._replace(
        params=optimizer(state.params, *(other.params for other in others)),
        learner=layers(state.learner, *(other.learner for other in others)),
        optimizer=jax.tree.map(optimizer, state.optimizer, *(one.optimizer for one in others), is_leaf=is_params),
    )
