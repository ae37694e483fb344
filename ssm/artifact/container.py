"""The bytes of an artefact: a fixed head, a header in JSON, float32 values, entropy-coded words (docs/format.md).

Nothing that a file says of its own size is believed: every length is compared with what is there before any memory
is taken for it, and the checksum covers all bytes.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ssm.errors import UserError
from ssm.files import plain

MAGIC = b"\x89SSM\r\n\x1a\n"
VERSION = 1
HEAD = struct.Struct("<8sHHIIII32s")
MOST_HEADER = 4 << 20  # bytes of JSON, once inflated


class Parts(NamedTuple):
    """What an artefact's file holds: its header, float32 values one after another, and the coder's 32-bit words."""

    header: dict[str, Any]
    values: np.ndarray
    words: np.ndarray


def pack(parts: Parts) -> bytes:
    """Return the bytes of a file.

    Raises:
        ValueError: for a header that JSON or the format has no form for.
    """
    text = json.dumps(plain(parts.header), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > MOST_HEADER:
        raise ValueError(f"a header of {len(text):,} bytes; at most {MOST_HEADER:,} can be saved")
    header = zlib.compress(text, 9)
    values, words = parts.values.astype("<f4").tobytes(), parts.words.astype("<u4").tobytes()
    sizes = VERSION, 0, len(header), len(text), len(values), len(words)
    body = header + values + words
    digest = _digest(HEAD.pack(MAGIC, *sizes, bytes(32)), body)
    return HEAD.pack(MAGIC, *sizes, digest) + body


def unpack(data: bytes) -> Parts:
    """Return what the bytes of a file hold; what the header says is for the caller to check.

    Raises:
        UserError: for anything but the bytes that `pack` wrote, whole and unchanged.
    """
    if len(data) < HEAD.size or data[: len(MAGIC)] != MAGIC:
        raise UserError("not an artefact: it does not begin as one")
    _, version, zero, packed, inflated, values, words, digest = HEAD.unpack_from(data)
    if version != VERSION or zero:
        raise UserError(f"version {version} of the format; this program reads version {VERSION}: get a newer one")
    if HEAD.size + packed + values + words != len(data) or values % 4 or words % 4:
        raise UserError(f"damaged: {len(data):,} bytes, and its head says otherwise; it was cut off, or changed")
    body = memoryview(data)[HEAD.size :]
    if _digest(data[: HEAD.size - 32] + bytes(32), body) != digest:
        raise UserError("damaged: its checksum is another one; copy it again")
    if inflated > MOST_HEADER:
        raise UserError(f"a header of {inflated:,} bytes; at most {MOST_HEADER:,} are read")
    header = _header(bytes(body[:packed]), inflated)
    floats = np.frombuffer(body[packed : packed + values], "<f4").astype(np.float32)
    if not np.isfinite(floats).all():
        raise UserError("it holds values that are not finite")
    return Parts(header, floats, np.frombuffer(body[packed + values :], "<u4").astype(np.uint32))


def _digest(head: bytes, body: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(head)
    digest.update(body)
    return digest.digest()


def _header(packed: bytes, size: int) -> dict[str, Any]:
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(packed, size + 1)
        if len(text) != size or not inflater.eof or inflater.unused_data:
            raise ValueError("it has another length than the head says")
        header = json.loads(text.decode(), parse_constant=_no_constant)
    except (zlib.error, ValueError, RecursionError) as error:
        raise UserError(f"its header is damaged: {error}") from error
    if not isinstance(header, Mapping):
        raise UserError("its header is damaged: not a JSON object")
    return dict(header)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")
