"""A ternary layer as the block of its live rows and columns, where that takes fewer bytes (docs/format.md, version 3).

A hidden unit that has died leaves a column of zeros, and a row of them in the next layer: to say so once is cheaper
than to code their elements one by one.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int8

from ssm.errors import UserError
from ssm.export.coding import Counts, count


class Block(NamedTuple):
    """A layer's matrix [rows, columns] without its rows and columns of zeros, and which those are not.

    A row is an input, or a place in the window of a convolution and an input channel; a column is an output.
    """

    rows: Bool[np.ndarray, " rows"]
    columns: Bool[np.ndarray, " columns"]
    elements: Int8[np.ndarray, "live_rows live_columns"]

    @property
    def live(self) -> tuple[int, int]:
        """How many rows and columns are live."""
        return self.elements.shape[0], self.elements.shape[1]

    def parts(self) -> list[Int8[np.ndarray, "..."]]:
        """Return it as the three ternary arrays that are coded."""
        return [self.rows.astype(np.int8), self.columns.astype(np.int8), self.elements]


def block_of(ternary: Int8[np.ndarray, "..."]) -> Block | None:
    """Return the block of a layer; None where it takes no fewer bytes than the layer as it is."""
    if not ternary.size:  # which may have any number of rows
        return None
    matrix = ternary.reshape(matrix_shape(ternary.shape))
    rows, columns = np.asarray(matrix.any(1)), np.asarray(matrix.any(0))
    if rows.all() and columns.all():
        return None
    block = Block(rows, columns, matrix[np.ix_(rows, columns)])
    return block if sum(cost(count(part)) for part in block.parts()) < cost(count(ternary)) else None


def counts_of(counts: Counts, shape: Sequence[int], live: tuple[int, int]) -> list[Counts]:
    """Return the counts of the three arrays of a block, from its layer's counts and shape."""
    rows, columns = matrix_shape(shape)
    return [
        Counts(0, live[0], rows),
        Counts(0, live[1], columns),
        Counts(counts.minus, counts.plus, live[0] * live[1]),
    ]


def joined(parts: Sequence[Int8[np.ndarray, " size"]], shape: Sequence[int]) -> Int8[np.ndarray, "..."]:
    """Return the layer of a block's three arrays, flat as they were coded; raises UserError for a live row of zeros."""
    rows, columns = (part.astype(bool) for part in parts[:2])
    elements = parts[2].reshape(np.count_nonzero(rows), np.count_nonzero(columns))
    if not (elements.any(1).all() and elements.any(0).all()):
        raise UserError("a row or column of a layer is said to be live, and has only zeros")
    matrix = np.zeros(matrix_shape(shape), np.int8)
    matrix[np.ix_(rows, columns)] = elements
    return matrix.reshape(shape)


def matrix_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Return a layer's shape as a matrix: the product of all axes but the last, and that."""
    return math.prod(shape[:-1]), shape[-1]


def cost(counts: Counts) -> float:
    """Return the bits that coding an array takes: the order-0 entropy of its elements."""
    minus, plus, size = counts
    return sum(number * math.log2(size / number) for number in (minus, size - minus - plus, plus) if number)
