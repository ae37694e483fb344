"""The k largest of many values, exactly, by counting: some ten passes over them, where a sort takes hundreds.

A threshold is searched whose values at or above it are k: by the Illinois method on the logarithm of the counts, and
by bisection over the bits of the float where that does not end.  Each pass is one comparison a value, without a branch,
so that it is vectorised over values and, under `vmap`, over seeds.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from ssm.learners.base import Layers, in_order

Ties = Literal["all", "none", "last"]
"""What is done with values equal to the k-th where there is no room for all: keep all, none, or the last in order."""

PARTS = 16
"""Parts that are counted side by side: XLA makes plain vector code of the sum of so many comparisons."""
GUESSES = 24
"""Passes by interpolation before those by bisection, of which 32 always end."""


LEAST, MOST = -(2**31), 2**31 - 1
SMALLEST, INFINITE = 0x00800000, 0x7F800000
"""The bits of the smallest normal number, and of infinity, above which are those of NaN."""


def largest(values: Float[Array, "..."], kept: Any, *, ties: Ties = "last") -> Bool[Array, "..."]:
    """Return which of the values are the `kept` largest, as a mask of their shape.

    values: of any shape and float dtype; NaN is never kept, and denormal numbers count as 0.  kept: an int from 0 to
    their number, traced or not.  `ties` says which of several values equal to the last one are kept; with `last` the
    mask has exactly `kept` ones.
    """
    keys = _keys(values)
    kept = jnp.asarray(kept, jnp.int32)
    threshold, number = _cut(keys, kept)
    at_or_above = keys >= threshold
    if ties == "all":
        return at_or_above
    above = keys > threshold
    if ties == "none":
        return jnp.where(number == kept, at_or_above, above)

    def first_of_the_last() -> Array:
        after = jnp.cumsum((keys == threshold).ravel()[::-1], dtype=jnp.int32)[::-1]
        return jnp.sum(after > kept - jnp.sum(above, dtype=jnp.int32), dtype=jnp.int32)

    # A place, not a mask: what the mask is used for is then computed in the same loop as the mask.
    first = lax.cond(number == kept, lambda: jnp.zeros((), jnp.int32), first_of_the_last)
    places = lax.iota(jnp.int32, keys.size).reshape(keys.shape)
    return above | ((keys == threshold) & (places >= first))


def largest_of_all(values: Layers, kept: Any, *, ties: Ties) -> dict[str, Array]:
    """Return masks of the `kept` largest of all layers' values together, of their shapes and dtype."""
    paths = in_order(values)
    flat = largest(jnp.concatenate([values[path].ravel() for path in paths]), kept, ties=ties)
    parts = jnp.split(flat, np.cumsum([values[path].size for path in paths])[:-1])
    return {
        path: one.reshape(values[path].shape).astype(values[path].dtype) for path, one in zip(paths, parts, strict=True)
    }


def kept_of(size: int, density: Any) -> Any:
    """Return how many of `size` weights edge-popup's program keeps: all but int((1 - density) * size).

    In double precision, where density is a Python number; a traced one is rounded in float32.
    """
    hidden = (1 - density) * size
    return size - (int(hidden) if isinstance(hidden, int | float) else jnp.floor(hidden).astype(jnp.int32))


def _cut(keys: Int[Array, "..."], kept: Int[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Return a key, and how many lie at or above it: `kept`, or more where the last one kept occurs several times.

    In the latter case the key is that value's.
    """
    flat = keys.ravel()
    if padding := -keys.size % PARTS:
        flat = jnp.concatenate([flat, jnp.full(padding, LEAST, jnp.int32)])
    parts = list(flat.reshape(PARTS, -1))
    # Of the largest magnitude: ~key is the key of the value's negative.
    largest_key = reduce(jnp.maximum, [jnp.where(part == LEAST, 0, part ^ (part >> 31)) for part in parts]).max()

    def goes_on(search: _Search) -> Array:
        return (search.above_low != kept) & (search.high > search.low + 1)

    def turn(search: _Search) -> _Search:
        return _turn(search, kept, parts)

    one, zero = jnp.ones((), jnp.float32), jnp.zeros((), jnp.int32)
    every = jnp.full((), keys.size, jnp.int32)  # but for NaN, which only keeps the search from ending early
    begin = _Search(~largest_key, largest_key + 1, every, zero, one, one, zero == 0, zero)
    found = lax.while_loop(goes_on, turn, begin)
    none = kept <= 0
    return jnp.where(none, MOST, found.low), jnp.where(none, 0, found.above_low)


class _Search(NamedTuple):
    """Bounds, as keys, with at least k values at or above `low` and fewer at or above `high`.

    The weights are Illinois's, `rose` says whether the last turn moved `low`.
    """

    low: Array
    high: Array
    above_low: Array
    above_high: Array
    low_weight: Array
    high_weight: Array
    rose: Array
    turn: Array


def _turn(search: _Search, kept: Array, parts: Sequence[Array]) -> _Search:
    low, high, above_low, above_high, low_weight, high_weight, rose, turn = search

    def logarithm(number: Array) -> Array:
        return jnp.log(number.astype(jnp.float32) + 0.5)

    excess = (logarithm(above_low) - logarithm(kept)) * low_weight
    lack = (logarithm(kept) - logarithm(above_high)) * high_weight
    guess = _ordered(_value(low) + (_value(high) - _value(low)) * (excess / (excess + lack)))
    middle = (low & high) + ((low ^ high) >> 1)  # without overflow
    middle = jnp.where((guess > low) & (guess < high) & (turn < GUESSES), guess, middle)
    number = _count(parts, middle)
    enough = number >= kept
    one = jnp.ones_like(low_weight)
    # A bound that stays a second time counts half as much, so that both move.
    return _Search(
        jnp.where(enough, middle, low),
        jnp.where(enough, high, middle),
        jnp.where(enough, number, above_low),
        jnp.where(enough, above_high, number),
        jnp.where(enough, one, jnp.where(rose, low_weight, low_weight * 0.5)),
        jnp.where(enough, jnp.where(rose, high_weight * 0.5, high_weight), one),
        enough,
        turn + 1,
    )


def _count(parts: Sequence[Int[Array, " values"]], threshold: Int[Array, ""]) -> Int[Array, ""]:
    # Added part by part, not by a reduction over the axis, which XLA's CPU compiler makes three times slower.
    return reduce(jnp.add, [jnp.where(part >= threshold, jnp.int32(1), jnp.int32(0)) for part in parts]).sum()


def _keys(values: Float[Array, "..."]) -> Int[Array, "..."]:
    """Return integers in the order of values, LEAST for NaN; -0 is 0, and so are numbers that XLA may flush to it."""
    bits = lax.bitcast_convert_type(values.astype(jnp.float32), jnp.int32)
    size = bits & MOST
    keys = jnp.where(size < SMALLEST, 0, bits ^ ((bits >> 31) & MOST))
    return jnp.where(size > INFINITE, LEAST, keys)


def _ordered(values: Float[Array, "..."]) -> Int[Array, "..."]:
    """Return integers in the order of floats: their bits, those of negative ones turned."""
    return _turned(lax.bitcast_convert_type(values, jnp.int32))


def _value(ordered: Int[Array, "..."]) -> Float[Array, "..."]:
    return lax.bitcast_convert_type(_turned(ordered), jnp.float32)


def _turned(bits: Int[Array, "..."]) -> Int[Array, "..."]:
    return jnp.where(bits < 0, bits ^ MOST, bits)
