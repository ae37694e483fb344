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

PARTS, LANES = 16, 32
"""Parts that are counted side by side, and values in a row of one: of such sums XLA makes plain vector code."""
GUESSES = 24
"""Passes by interpolation before those by bisection, of which 32 always end."""

INFINITE = 0x7F800000
"""The bits of infinity, of float32."""


def largest(values: Float[Array, "..."], kept: Any, *, ties: Ties = "last") -> Bool[Array, "..."]:
    """Return which of the values are the `kept` largest, as a mask of their shape.

    values: of any shape and float dtype; NaN is never kept, and denormal numbers count as 0 where XLA flushes them, as
    on a CPU.  kept: an int from 0 to their number, traced or not.  `ties` says which of several values equal to the
    last one are kept; with `last` the mask has exactly `kept` ones.
    """
    return largest_of_each({"": values}, {"": kept}, ties=ties)[""] > 0


def largest_of_each(values: Layers, kept: Layers, *, ties: Ties = "last") -> dict[str, Array]:
    """Return `largest` of each layer's values as masks of their dtype, all found by one search."""
    paths = in_order(values)
    own = [values[path].astype(jnp.float32) for path in paths]
    wanted = jnp.stack([jnp.asarray(kept[path], jnp.int32) for path in paths])
    together = _together(own)
    threshold, number = _cut(together, wanted)
    if ties == "last":
        masks = map(_from_place, own, threshold, _first_places(together, wanted, threshold, number))
    else:
        exact = (number == wanted) | (ties == "all")
        masks = (
            jnp.where(one, layer >= least, layer > least)
            for layer, least, one in zip(own, threshold, exact, strict=True)
        )
    return {path: mask.astype(values[path].dtype) for path, mask in zip(paths, masks, strict=True)}


def largest_of_all(values: Layers, kept: Any, *, ties: Ties) -> dict[str, Array]:
    """Return masks of the `kept` largest of all layers' values together, of their shapes and dtype."""
    paths = in_order(values)
    flat = largest(jnp.concatenate([values[path].ravel() for path in paths]), kept, ties=ties)
    parts = jnp.split(flat, np.cumsum([values[path].size for path in paths])[:-1])
    return {
        path: one.reshape(values[path].shape).astype(values[path].dtype) for path, one in zip(paths, parts, strict=True)
    }


def least_of_all(values: Layers, kept: Any) -> Float[Array, ""]:
    """Return a number that `kept` of all layers' values together reach, or more where the last one is repeated.

    It is the smallest value where all are kept, and infinity where none is.
    """
    flat = jnp.concatenate([values[path].ravel() for path in in_order(values)]).astype(jnp.float32)
    return jnp.maximum(_cut(_together([flat]), jnp.asarray(kept, jnp.int32)[None])[0][0], flat.min())


def kept_of(size: int, density: Any) -> Any:
    """Return how many of `size` weights edge-popup's program keeps: all but int((1 - density) * size).

    In double precision, where density is a Python number; a traced one is rounded in float32.
    """
    hidden = (1 - density) * size
    return size - (int(hidden) if isinstance(hidden, int | float) else jnp.floor(hidden).astype(jnp.int32))


class _Together(NamedTuple):
    """The values of all layers in rows: [PARTS, rows, LANES], each layer's rows one after another, padded with NaN.

    Row by row of a part, and part by part, a layer's values are in order.  owner: the layer of each row.  sizes: how
    many values each layer has.
    """

    parts: Float[Array, "parts rows lanes"]
    owner: np.ndarray
    sizes: tuple[int, ...]

    def of(self, layer: int) -> Float[Array, " values"]:
        """Return a layer's values, in order, and the NaN after them."""
        return self.parts[:, self.rows(layer)].ravel()

    def rows(self, layer: int) -> slice:
        """Return which rows of each part are a layer's."""
        first, last = np.flatnonzero(self.owner == layer)[[0, -1]]
        return slice(int(first), int(last) + 1)


def _together(values: Sequence[Float[Array, "..."]]) -> _Together:
    def rows(layer: Array) -> Array:
        flat = layer.ravel()
        if padding := -flat.size % (PARTS * LANES):
            flat = jnp.concatenate([flat, jnp.full(padding, jnp.nan, flat.dtype)])
        return flat.reshape(PARTS, -1, LANES)

    every = [rows(layer) for layer in values]
    owner = np.repeat(np.arange(len(every)), [one.shape[1] for one in every])
    # Computed once: XLA would make them anew, in branchy code, for the branch that deals with ties.
    parts = lax.optimization_barrier(jnp.concatenate(every, axis=1))
    return _Together(parts, owner, tuple(layer.size for layer in values))


def _first_places(
    together: _Together, kept: Int[Array, " layers"], threshold: Float[Array, " layers"], number: Int[Array, " layers"]
) -> Int[Array, " layers"]:
    """Return from what place on values equal to a layer's threshold are kept: 0 where all are.

    A place, not a mask: what the mask is used for is then computed in the same loop as the mask.
    """

    def first_of_the_last(layer: int) -> Array:
        flat = together.of(layer)
        after = jnp.cumsum((flat == threshold[layer])[::-1], dtype=jnp.int32)[::-1]
        return jnp.sum(after > kept[layer] - jnp.sum(flat > threshold[layer], dtype=jnp.int32), dtype=jnp.int32)

    def none() -> Array:
        return jnp.zeros(len(together.sizes), jnp.int32)

    def some() -> Array:
        return jnp.stack([first_of_the_last(layer) for layer in range(len(together.sizes))])

    return lax.cond((number == kept).all(), none, some)


def _from_place(values: Float[Array, "..."], threshold: Float[Array, ""], first: Int[Array, ""]) -> Bool[Array, "..."]:
    place = lax.iota(jnp.int32, values.size).reshape(values.shape)
    return (values >= threshold) & ((values > threshold) | (place >= first))


def _cut(together: _Together, kept: Int[Array, " layers"]) -> tuple[Float[Array, " layers"], Int[Array, " layers"]]:
    """Return a threshold of each layer, and how many values lie at or above it.

    They are `kept`, or more where the last one kept occurs several times; the threshold is then that value.  It is
    infinity where none is kept, and may be minus infinity where all are.
    """
    extremes = _range(together)

    def open_(search: _Search) -> Array:
        return (search.above_low != kept) & (search.high > search.low + 1)

    def turn(search: _Search) -> _Search:
        return _turn(search, kept, together, extremes, open_(search))

    layers = len(together.sizes)
    one, zero = jnp.ones(layers, jnp.float32), jnp.zeros(layers, jnp.int32)
    infinite = jnp.full(layers, INFINITE, jnp.int32)
    every = jnp.asarray(together.sizes, jnp.int32)  # NaN, too, which only keeps a search from ending early
    begin = _Search(~infinite, infinite + 1, every, zero, one, one, zero == 0, jnp.zeros((), jnp.int32))
    found = lax.while_loop(lambda search: open_(search).any(), turn, begin)
    none = kept <= 0
    return jnp.where(none, jnp.inf, _value(found.low)), jnp.where(none, 0, found.above_low)


def _range(together: _Together) -> tuple[Float[Array, " layers"], Float[Array, " layers"]]:
    """Return each layer's smallest and largest value that is no NaN; where there is none, infinity and its negative."""
    # Comparisons leave NaN out by themselves; minimum and maximum would look for it at each value.
    least = reduce(lambda one, other: jnp.where(other < one, other, one), together.parts, jnp.asarray(jnp.inf)).min(1)
    most = reduce(lambda one, other: jnp.where(other > one, other, one), together.parts, jnp.asarray(-jnp.inf)).max(1)
    rows = [together.rows(layer) for layer in range(len(together.sizes))]
    return jnp.stack([least[own].min() for own in rows]), jnp.stack([most[own].max() for own in rows])


class _Search(NamedTuple):
    """Bounds of each layer, as integers in the order of floats: k values or more are at least `low`, fewer `high`.

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


def _turn(search: _Search, kept: Array, together: _Together, extremes: tuple[Array, Array], goes_on: Array) -> _Search:
    low, high, above_low, above_high, low_weight, high_weight, rose, turn = search

    def logarithm(number: Array) -> Array:
        return jnp.log(number.astype(jnp.float32) + 0.5)

    excess = (logarithm(above_low) - logarithm(kept)) * low_weight
    lack = (logarithm(kept) - logarithm(above_high)) * high_weight
    below, above = jnp.clip(_value(low), *extremes), jnp.clip(_value(high), *extremes)
    guess = _ordered(below + (above - below) * (excess / (excess + lack)))
    middle = (low & high) + ((low ^ high) >> 1)  # without overflow
    middle = jnp.where((guess > low) & (guess < high) & (turn < GUESSES), guess, middle)
    number = _count(together, _value(middle))
    rises, falls = goes_on & (number >= kept), goes_on & (number < kept)
    # A bound that stays a second time counts half as much, so that both move.
    return _Search(
        jnp.where(rises, middle, low),
        jnp.where(falls, middle, high),
        jnp.where(rises, number, above_low),
        jnp.where(falls, number, above_high),
        jnp.where(rises, 1.0, jnp.where(rose, low_weight, low_weight * 0.5)),
        jnp.where(falls, 1.0, jnp.where(rose, high_weight * 0.5, high_weight)),
        rises,
        turn + 1,
    )


def _count(together: _Together, thresholds: Float[Array, " layers"]) -> Int[Array, " layers"]:
    """Return how many values of each layer lie at or above its threshold."""
    own = thresholds[together.owner][:, None]
    # Added part by part, not by a reduction over the axis, which XLA's CPU compiler makes three times slower.
    counts = reduce(jnp.add, [jnp.where(part >= own, jnp.int32(1), jnp.int32(0)) for part in together.parts])
    return counts.sum(1) @ (together.owner[:, None] == np.arange(len(together.sizes))).astype(np.int32)


def _ordered(values: Float[Array, "..."]) -> Int[Array, "..."]:
    """Return integers in the order of floats: their bits, those of negative ones turned."""
    return _turned(lax.bitcast_convert_type(values, jnp.int32))


def _value(ordered: Int[Array, "..."]) -> Float[Array, "..."]:
    return lax.bitcast_convert_type(_turned(ordered), jnp.float32)


def _turned(bits: Int[Array, "..."]) -> Int[Array, "..."]:
    return jnp.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
