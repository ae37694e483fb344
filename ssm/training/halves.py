"""A batch as two fixed halves whose gradients are added, on one device after another or on two at once.

So a seed alone keeps two devices busy, and is still the same bit for bit as in a group: the same loop computes each
half in both, and the sum of two numbers does not depend on their order.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Int

AXIS = "halves"
"""The mesh's axis along which a seed's two halves lie; of length 1 where one device has both."""


class Halves(NamedTuple):
    """The halves that a device computes: those from `first` up to `last`."""

    first: Int[Array, ""]
    last: Int[Array, ""]


def own_halves(active: Bool[Array, ""]) -> Halves:
    """Return the halves of this device, of a seed that is trained.

    `active`, which is true, is known only as the program runs: XLA would take a loop of one turn apart, and round
    otherwise than in one of two.
    """
    devices = lax.axis_size(AXIS)
    first = lax.axis_index(AXIS).astype(jnp.int32) if devices == 2 else jnp.zeros((), jnp.int32)
    return Halves(first, first + active.astype(jnp.int32) * (2 // devices))


def in_halves(tree: Any) -> Any:
    """Return arrays [n, ...] as [2, n / 2, ...]; where n is odd, with one zero more, which for `valid` is padding."""

    def halves(array: Array) -> Array:
        odd = len(array) % 2
        padded = jnp.concatenate([array, jnp.zeros_like(array[:1])]) if odd else array
        return padded.reshape(2, -1, *array.shape[1:])

    return jax.tree.map(halves, tree)


def added(halves: Halves, function: Callable[[Any], Any], both: Any) -> Any:
    """Return the sum over two halves of what a function makes of each, from arrays [2, ...]."""

    def at(index: Array) -> Any:
        return function(jax.tree.map(lambda array: lax.dynamic_index_in_dim(array, index, keepdims=False), both))

    # Each half is stored, not added in the loop: a product that ends it would be added without being rounded.
    made = jax.tree.map(lambda leaf: jnp.zeros((2, *leaf.shape), leaf.dtype), jax.eval_shape(at, jnp.int32(0)))

    def turn(index: Array, made: Any) -> Any:
        return jax.tree.map(lambda array, half: array.at[index].set(half), made, at(index))

    made = lax.fori_loop(*halves, turn, made)
    if lax.axis_size(AXIS) == 2:
        return lax.psum(
            jax.tree.map(lambda array: lax.dynamic_index_in_dim(array, halves.first, keepdims=False), made), AXIS
        )
    return jax.tree.map(lambda array: array[0] + array[1], made)
