"""Ternary layers as one stream of entropy-coded words (docs/format.md), by constriction's ANS coder.

An array's symbols -1, 0, +1 are coded with its own shares of them, so that its cost is within a few bytes of their
order-0 entropy; all share one stream, the first one on top.  Which arrays stand for a layer says `ssm.export.block`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import constriction
import numpy as np
from jaxtyping import Int8, UInt32

from ssm.errors import UserError

_stream: Any = constriction.stream  # pyright: ignore[reportAttributeAccessIssue]  (a compiled module)

CHUNK = 1 << 20  # symbols coded at once: the coder's input and output take four bytes for each


class Counts(NamedTuple):
    """How many elements of a layer are -1 and +1, of how many."""

    minus: int
    plus: int
    size: int


def count(layer: Int8[np.ndarray, "..."]) -> Counts:
    """Count a ternary layer of any shape.

    Raises:
        ValueError: for values other than -1, 0 and 1.
    """
    flat = layer.reshape(-1)
    minus = zero = plus = 0
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK]
        minus += int(np.count_nonzero(part == -1))
        zero += int(np.count_nonzero(part == 0))
        plus += int(np.count_nonzero(part == 1))
    if minus + zero + plus != flat.size:
        raise ValueError("a layer has values other than -1, 0 and 1")
    return Counts(minus, plus, flat.size)


def encode(layers: Sequence[Int8[np.ndarray, "..."]]) -> UInt32[np.ndarray, " words"]:
    """Return the stream of ternary layers, which `decode` returns in this order; raises ValueError as `count` does."""
    coder = _stream.stack.AnsCoder()
    for layer in reversed(layers):
        counts = count(layer)
        model = _model(counts) if counts.size else None
        flat = layer.reshape(-1)
        for start in reversed(range(0, flat.size, CHUNK)):
            coder.encode_reverse(flat[start : start + CHUNK].astype(np.int32) + 1, model)
    return coder.get_compressed()


def decode(words: UInt32[np.ndarray, " words"], counts: Sequence[Counts]) -> Iterator[Int8[np.ndarray, " size"]]:
    """Yield the layers of a stream in order, flat.

    Raises:
        UserError: if a layer's counts differ from those it was coded with, or words remain in the stream.
    """
    if not all(min(minus, plus, size - minus - plus) >= 0 for minus, plus, size in counts):
        raise UserError("a layer has more elements of -1 and +1 than elements in all")
    try:
        coder = _stream.stack.AnsCoder(words)
    except ValueError as error:
        raise UserError(f"the stream of its layers is damaged ({error})") from error
    for number, one in enumerate(counts):
        layer = np.empty(one.size, np.int8)
        model = _model(one) if one.size else None
        for start in range(0, one.size, CHUNK):
            part = layer[start : start + CHUNK]
            part[:] = coder.decode(model, part.size)
        layer -= 1
        if count(layer) != one:
            raise UserError(f"part {number} of its stream has other elements than it was saved with")
        yield layer
    if not coder.is_empty():
        raise UserError("the stream is longer than its layers")


def _model(counts: Counts) -> Any:
    minus, plus, size = counts
    shares = np.asarray([minus, size - minus - plus, plus], np.float64) / size
    return _stream.model.Categorical(shares, perfect=False)
