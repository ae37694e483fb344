"""The bytes of an artefact: a fixed head, a header in JSON, float32 values, entropy-coded words (docs/format.md).

No length in a file is trusted: each is checked against the file's size before memory is allocated for it, and the
checksum covers all bytes.
"""

import hashlib
import json
import math
import os
import re
import struct
import zlib
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, UInt32

from ssm.errors import UserError

MAGIC = b"\x89SSM\r\n\x1a\n"
VERSIONS = (1, 2, 3, 4)
HEAD = struct.Struct("<8sHHIIII32s")
MOST_HEADER = 1 << 20  # bytes of inflated JSON: Python's objects take some 25 times as much
MOST_LEVELS = 32  # of nested lists and objects

# Unsafe for a terminal or without UTF-8: control characters except tab and newline, and surrogates.
_BAD_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Parts(NamedTuple):
    """The parts of an artefact's file: its header, the concatenated float32 values, and the coder's 32-bit words.

    `version` is that of the format which the header needs.
    """

    header: dict[str, Any]
    values: Float32[np.ndarray, " values"]
    words: UInt32[np.ndarray, " words"]
    version: int = 1


class Head(NamedTuple):
    """The fixed head: version; lengths in bytes of the packed header, its JSON, the values and the words; checksum."""

    version: int
    packed: int
    inflated: int
    values: int
    words: int
    digest: bytes


def pack(parts: Parts) -> bytes:
    """Return the bytes of a file.

    Raises:
        ValueError: for a header that JSON or the format cannot represent, and for values that are not finite.
    """
    if not np.isfinite(parts.values).all():
        raise ValueError("values that are not finite")
    _check(parts.header)
    text = json.dumps(parts.header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    values, words = parts.values.astype("<f4").tobytes(), parts.words.astype("<u4").tobytes()
    return pack_text(text, values, words, version=parts.version)


def pack_text(text: bytes, values: bytes, words: bytes, *, version: int = 1) -> bytes:
    """Return the bytes of a file from the header's JSON, and the values and words as bytes.

    Raises:
        ValueError: for a header that is too long.
    """
    if len(text) > MOST_HEADER:
        raise ValueError(f"the header has {len(text):,} bytes; at most {MOST_HEADER:,} can be saved")
    header = zlib.compress(text, 9)
    return sign(
        HEAD.pack(MAGIC, version, 0, len(header), len(text), len(values), len(words), bytes(32)),
        header + values + words,
    )


def sign(head: bytes, body: bytes) -> bytes:
    """Return a head and a body with their checksum."""
    return head[:-32] + _digest(head, body) + body


def read(path: str | os.PathLike[str]) -> bytes:
    """Return a file's bytes, unless its head is invalid or states another length: then only the head is read.

    Raises:
        UserError: for such a head. OSError: if the file cannot be read.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        _head(file.read(HEAD.size), size)
        file.seek(0)
        return file.read(size)


def unpack(data: bytes) -> Parts:
    """Return the parts of a file's bytes; the caller checks what the header says.

    The header is a tree of JSON values at most `MOST_LEVELS` deep, with finite numbers, integers of at most 64 bits and
    printable text.

    Raises:
        UserError: for anything but the bytes that `pack` wrote, complete and unchanged.
    """
    head = _head(data, len(data))
    body = memoryview(data)[HEAD.size :]
    if _digest(data[: HEAD.size], body) != head.digest:
        raise UserError("damaged: its checksum does not match; copy it again")
    if head.inflated > MOST_HEADER:
        raise UserError(f"the header has {head.inflated:,} bytes; at most {MOST_HEADER:,} are read")
    header = _header(bytes(body[: head.packed]), head.inflated)
    values = np.frombuffer(body[head.packed : head.packed + head.values], "<f4").astype(np.float32)
    if not np.isfinite(values).all():
        raise UserError("it holds values that are not finite")
    words = np.frombuffer(body[head.packed + head.values :], "<u4").astype(np.uint32)
    return Parts(header, values, words, head.version)


def _head(data: bytes, size: int) -> Head:
    """Return the head of a file of `size` bytes which `data` begins."""
    if len(data) < HEAD.size or data[: len(MAGIC)] != MAGIC:
        raise UserError("not an artefact: it does not begin like one")
    _, version, zero, packed, inflated, values, words, digest = HEAD.unpack_from(data)
    if version not in VERSIONS or zero:
        known = f"{VERSIONS[0]} to {VERSIONS[-1]}"
        raise UserError(f"version {version} of the format; this program reads versions {known}: install a newer one")
    if HEAD.size + packed + values + words != size or values % 4 or words % 4:
        raise UserError(f"damaged: {size:,} bytes, and its head says otherwise; it was truncated or changed")
    return Head(version, packed, inflated, values, words, digest)


def _digest(head: bytes, body: bytes | memoryview) -> bytes:
    """Return the SHA-256 of all bytes, with zeros in place of the checksum."""
    digest = hashlib.sha256(head[:-32] + bytes(32))
    digest.update(body)
    return digest.digest()


def _header(packed: bytes, size: int) -> dict[str, Any]:
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(packed, size + 1)
        if len(text) != size or not inflater.eof or inflater.unused_data:
            raise ValueError("its length is not what the head says")
        header = json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
        if not isinstance(header, dict):
            raise ValueError("not a JSON object")
        _check(header)
    except (zlib.error, ValueError, RecursionError) as error:
        raise UserError(f"its header is damaged: {error}") from error
    return header


def _check(value: Any, levels: int = MOST_LEVELS) -> None:
    """Raise ValueError unless a tree of JSON values is printable, in range and not too deep."""
    if isinstance(value, str):
        if _BAD_TEXT.search(value):
            raise ValueError(f"text that cannot be printed: {short(value)}")
    elif isinstance(value, int | float):
        if not abs(value) < (2**63 if isinstance(value, int) else math.inf):
            raise ValueError(f"{short(value)} is too large a number")
    elif isinstance(value, list | dict):
        if not levels:
            raise ValueError(f"more than {MOST_LEVELS} nested lists and objects")
        for item in value:
            _check(item, levels - 1)
        for item in value.values() if isinstance(value, dict) else ():
            _check(item, levels - 1)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a name appears twice among {short(list(found))}")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")
