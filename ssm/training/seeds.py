"""One function of a seed over the stacked arrays of many, on one device: one after another."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import AbstractMesh
from jaxtyping import Int

from ssm.training.step import State


def alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of one seed, whose net lies on one device, whatever mesh its module has in mind."""

    def call(*args):
        with jax.sharding.use_abstract_mesh(AbstractMesh((), ())):
            return function(*args)

    return call


def loop_over(function: Callable[[Any], Any], stacked: Any, count: Int[Array, ""]) -> Any:
    """Map a function over the leading axis of a tree's arrays, one after another, as `jax.lax.map` does.

    `count`, the length of that axis, is known only as the program runs: XLA would take a loop of one turn apart,
    compile its body otherwise, and a seed alone would be rounded otherwise than in a group.  For the same reason no
    axis has length 1 in the loop: a single turn has a neighbour, which is never computed.
    """
    function = jax.jit(function, inline=True)  # traced once, not for the shapes and for the loop
    length, stacked = _length(stacked), _with_neighbour(stacked)
    made = _zeros(lambda: function(_at(stacked, 0)), max(length, 2))

    def turn(index: Array, made: Any) -> Any:
        return _put(made, index, function(_at(stacked, index)))

    return _first(lax.fori_loop(0, count, turn, made), length)


def over_active(
    function: Callable[[tuple[State, Any]], tuple[State, Any]], states: State, given: Any
) -> tuple[State, Any]:
    """Return stacked seeds' states, those of the active ones as a function leaves them, and its information of those.

    given: what else the function takes of each seed, and which are `active`.

    The loop is as that of `loop_over`; a seed that is not active costs nothing, and its information is 0.
    """
    function = jax.jit(function, inline=True)
    length, states, given = _length(states), _with_neighbour(states), _with_neighbour(given)
    active = given.active & (jnp.arange(_length(states)) < length)
    turns = jnp.argsort(~active)
    made = _zeros(lambda: function((_at(states, 0), _at(given, 0)))[1], _length(states))

    def turn(number: Array, both: tuple[State, Any]) -> tuple[State, Any]:
        index = turns[number]
        return _put(both, index, function((_at(both[0], index), _at(given, index))))

    return _first(lax.fori_loop(0, jnp.sum(active, dtype=jnp.int32), turn, (states, made)), length)


def _length(stacked: Any) -> int:
    return len(jax.tree.leaves(stacked)[0])


def _with_neighbour(stacked: Any) -> Any:
    if _length(stacked) > 1:
        return stacked
    return jax.tree.map(lambda array: jnp.concatenate([array, array]), stacked)


def _at(stacked: Any, index: Array | int) -> Any:
    return jax.tree.map(lambda array: lax.dynamic_index_in_dim(array, index, keepdims=False), stacked)


def _put(stacked: Any, index: Array, part: Any) -> Any:
    return jax.tree.map(lambda array, own: array.at[index].set(own), stacked, part)


def _zeros(function: Callable[[], Any], length: int) -> Any:
    return jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), jax.eval_shape(function))


def _first(stacked: Any, length: int) -> Any:
    return jax.tree.map(lambda array: array[:length], stacked)


def where_active(active: Array, after: Any, before: Any) -> Any:
    """Return of stacked trees the active seeds' from `after`, the others' from `before`."""
    return jax.tree.map(lambda new, old: jnp.where(active.reshape(-1, *[1] * (new.ndim - 1)), new, old), after, before)
