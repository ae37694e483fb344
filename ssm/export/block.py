"""A ternary layer in parts that are coded each by itself, where that takes fewer bytes (docs/format.md, versions 3, 4).

A hidden unit that has died leaves a column of zeros, and a row of them in the next layer: to say so once is cheaper
than to code their elements one by one.  What is left is denser in some rows and columns, such as the pixels in the
middle: in two classes of each, the elements of four parts are coded with shares of their own.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int64

from ssm.errors import UserError
from ssm.export.coding import Counts, count

CLASSES = (1, -1)
"""How an array of rows or columns marks the two classes; 0 are those of zeros alone."""
EXTRA = 20 * 8
"""Bits that the header takes for two classes, about."""
MOST = 1 << 18
"""Of how many rows or columns classes are sought: each takes some 100 bytes of memory."""


class BlockForm(NamedTuple):
    """A block without its elements: how many rows and columns are of each class, and the counts of its parts.

    parts: one; or, of two classes, four: of the first rows, first columns and second ones, then of the second rows.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    parts: tuple[Counts, ...]

    def counts(self, shape: Sequence[int]) -> list[Counts]:
        """Return the counts of all its arrays, in the order in which they are coded, of a layer of this shape."""
        marks = zip((self.rows, self.columns), matrix_shape(shape), strict=True)
        return [*(Counts(second, first, size) for (first, second), size in marks), *self.parts]


class Block(NamedTuple):
    """A layer's matrix [rows, columns] without its rows and columns of zeros, in one part or in four.

    A row is an input, or a place in the window of a convolution and an input channel; a column is an output.  rows,
    columns: of which class each is (`CLASSES`), or 0.
    """

    rows: Int8[np.ndarray, " rows"]
    columns: Int8[np.ndarray, " columns"]
    elements: tuple[Int8[np.ndarray, "live_rows live_columns"], ...]

    @property
    def form(self) -> BlockForm:
        """What the header says of it."""
        rows, columns = (
            (int(np.count_nonzero(marks == CLASSES[0])), int(np.count_nonzero(marks == CLASSES[1])))
            for marks in (self.rows, self.columns)
        )
        return BlockForm(rows, columns, tuple(count(part) for part in self.elements))

    def parts(self) -> list[Int8[np.ndarray, "..."]]:
        """Return it as the ternary arrays that are coded."""
        return [self.rows, self.columns, *self.elements]


def block_of(ternary: Int8[np.ndarray, "..."]) -> Block | None:
    """Return the block of a layer that takes the fewest bytes; None where the layer as it is takes no more."""
    if not ternary.size:  # which may have any number of rows
        return None
    matrix = ternary.reshape(matrix_shape(ternary.shape))
    one = _block(matrix, *_live(matrix))
    four = _block(matrix, *classes(matrix))
    found = [(cost(count(ternary)), 0, None), (_bits(one), 1, one), (_bits(four) + EXTRA, 2, four)]
    return min(found, key=lambda each: each[:2])[2]


def classes(
    matrix: Int8[np.ndarray, "rows columns"],
) -> tuple[Int8[np.ndarray, " rows"], Int8[np.ndarray, " columns"]]:
    """Return in which class each row and column is, so that four parts take few bits; the first are the denser ones.

    Rows are cut where that takes the fewest bits as the columns are, then columns, twice; all are of the first class
    where no cut takes fewer, and in a matrix of more than `MOST` rows or columns.
    """
    rows, columns = _live(matrix)
    for _ in range(2 if max(matrix.shape) <= MOST else 0):
        rows = _cut(matrix, columns)
        columns = _cut(matrix.T, rows)
    return rows, columns


def _live(
    matrix: Int8[np.ndarray, "rows columns"],
) -> tuple[Int8[np.ndarray, " rows"], Int8[np.ndarray, " columns"]]:
    """Return which rows and columns have an element that is not 0, all of the first class."""
    return np.asarray(matrix.any(1)).astype(np.int8), np.asarray(matrix.any(0)).astype(np.int8)


def _cut(matrix: Int8[np.ndarray, "rows columns"], columns: Int8[np.ndarray, " columns"]) -> Int8[np.ndarray, " rows"]:
    """Return the classes of a matrix's rows, by density, that take the fewest bits with these classes of columns."""
    groups = [np.flatnonzero(columns == mark) for mark in CLASSES]
    minus, plus = (
        np.stack([np.count_nonzero(matrix[:, group] == sign, axis=1) for group in groups], 1) for sign in CLASSES[::-1]
    )
    kept = (minus + plus).sum(1)
    order = np.argsort(-kept, kind="stable")[: np.count_nonzero(kept)]
    number, widths = np.arange(1, len(order) + 1)[:, None], np.asarray([len(group) for group in groups])
    sums = [np.cumsum(counts[order], 0) for counts in (minus, plus)]
    bits = _entropies(sums[0], sums[1], number * widths)
    bits += _entropies(sums[0][-1:] - sums[0], sums[1][-1:] - sums[1], (len(order) - number) * widths)
    total = bits.sum(1) + _entropies(len(order) - number, number, np.full_like(number, len(kept)))[:, 0]
    first = len(order) - int(np.argmin(total[::-1])) if len(order) else 0  # of equal ones the most rows
    rows = np.zeros(len(matrix), np.int8)
    rows[order[:first]], rows[order[first:]] = CLASSES
    return rows


def _entropies(
    minus: Int64[np.ndarray, "..."], plus: Int64[np.ndarray, "..."], size: Int64[np.ndarray, "..."]
) -> Float64[np.ndarray, "..."]:
    """Return `cost` of many arrays at once."""
    total = np.zeros(np.broadcast_shapes(minus.shape, plus.shape, size.shape))
    for number in (minus, plus, size - minus - plus):
        total += number * np.log2(np.maximum(size, 1) / np.maximum(number, 1))
    return total


def _block(
    matrix: Int8[np.ndarray, "rows columns"], rows: Int8[np.ndarray, " rows"], columns: Int8[np.ndarray, " columns"]
) -> Block:
    several = (rows == CLASSES[1]).any() or (columns == CLASSES[1]).any()
    places = [np.ix_(row, column) for row, column in _places(rows, columns, several=bool(several))]
    return Block(rows, columns, tuple(matrix[place] for place in places))


def _places(
    rows: Int8[np.ndarray, " rows"], columns: Int8[np.ndarray, " columns"], *, several: bool
) -> list[tuple[Bool[np.ndarray, " rows"], Bool[np.ndarray, " columns"]]]:
    """Return the rows and columns of each part, in their order."""
    marks = CLASSES if several else CLASSES[:1]
    return [(rows == row, columns == column) for row, column in product(marks, marks)]


def joined(parts: Sequence[Int8[np.ndarray, " size"]], shape: Sequence[int]) -> Int8[np.ndarray, "..."]:
    """Return the layer of a block's arrays, flat as they were coded; raises UserError for a live row of zeros."""
    rows, columns, *elements = parts
    matrix = np.zeros(matrix_shape(shape), np.int8)
    for part, (row, column) in zip(elements, _places(rows, columns, several=len(elements) > 1), strict=True):
        matrix[np.ix_(row, column)] = part.reshape(np.count_nonzero(row), np.count_nonzero(column))
    if not ((matrix.any(1) == rows.astype(bool)).all() and (matrix.any(0) == columns.astype(bool)).all()):
        raise UserError("a row or column of a layer is said to be live, and has only zeros")
    return matrix.reshape(shape)


def matrix_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Return a layer's shape as a matrix: the product of all axes but the last, and that."""
    return math.prod(shape[:-1]), shape[-1]


def cost(counts: Counts) -> float:
    """Return the bits that coding an array takes: the order-0 entropy of its elements."""
    return float(_entropies(*(np.asarray(number) for number in counts)))


def _bits(block: Block) -> float:
    return sum(cost(count(part)) for part in block.parts())
