"""The authors' file formats, from bytes to arrays: IDX (MNIST) and the binary version of CIFAR."""

import gzip
import math
import pathlib
import zlib

import numpy as np
from jaxtyping import Int32, UInt8

from ssm.data.dataset import check_labels
from ssm.data.errors import CorruptFileError, TrailingBytesError, TruncatedFileError, WrongMagicError

GZIP = b"\x1f\x8b"
_PIXELS = 3 * 32 * 32
_COARSE_CLASSES = 20


def read_bytes(path: pathlib.Path) -> bytes:
    """The contents of a file, as `unpacked` returns them."""
    return unpacked(path.read_bytes(), path)


def unpacked(data: bytes, path: pathlib.Path) -> bytes:
    """A file's contents, unpacked if they are gzipped (recognised by the first bytes, not by the name).

    Raises `TruncatedFileError` for nothing or a gzip stream that ends early, `CorruptFileError` for a damaged one, both
    with `path`.
    """
    if not data:
        raise TruncatedFileError(f"{path}: an empty file. Copy or download it again.")
    if not data.startswith(GZIP):
        return data
    try:
        return gzip.decompress(data)
    except EOFError:
        raise TruncatedFileError(
            f"{path}: truncated, the gzip stream ends early at {len(data):,} bytes; expected a complete one. "
            "Copy or download the file again."
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise CorruptFileError(
            f"{path}: corrupt gzip ({error}), expected an intact one. Copy or download the file again."
        ) from None


def parse_idx(data: bytes, dimensions: int, path: pathlib.Path) -> UInt8[np.ndarray, "..."]:
    """The array in an IDX file of unsigned bytes: magic number, sizes (big-endian, 32 bits), then the values.

    `dimensions` is 3 for images [n, height, width] and 1 for labels [n]; `path` is named in errors.
    Raises `WrongMagicError`, `TruncatedFileError` or `TrailingBytesError`.
    Source: the MNIST page of LeCun et al.
    """
    magic = 0x0800 + dimensions
    if len(data) >= 4 and int.from_bytes(data[:4], "big") != magic:
        raise WrongMagicError(
            f"{path}: wrong magic number 0x{data[:4].hex()}, expected 0x{magic:08x} "
            f"(IDX, unsigned bytes, {dimensions} dimension{'s' if dimensions > 1 else ''}). "
            "Is it another file under this name?"
        )
    header = 4 + 4 * dimensions
    if len(data) < header:
        raise TruncatedFileError(f"{path}: truncated, {len(data)} bytes, expected a header of {header} bytes")
    shape = [int(size) for size in np.frombuffer(data, ">u4", dimensions, 4)]
    expected = header + math.prod(shape)
    _check_length(len(data), expected, f"as its header {shape} announces", path)
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def parse_cifar(
    data: bytes, classes: int, path: pathlib.Path
) -> tuple[UInt8[np.ndarray, "n 32 32 3"], Int32[np.ndarray, " n"]]:
    """Images and labels in a file of CIFAR's binary version; `classes` is 10 or 100.

    A record is the label (CIFAR-100: coarse label, then the fine label that is returned), then the red, green
    and blue planes of 32 x 32 bytes. Raises `TruncatedFileError` or `LabelRangeError` with `path`.
    Source: Krizhevsky's CIFAR page.
    """
    label_bytes = 2 if classes == 100 else 1
    record = label_bytes + _PIXELS
    whole = max(1, len(data) // record) * record
    if len(data) != whole:
        raise TruncatedFileError(
            f"{path}: truncated, {len(data):,} bytes, expected whole records of {record:,} bytes "
            f"(CIFAR-{classes}, binary version)"
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, record)
    if label_bytes == 2:
        check_labels(records[:, 0], _COARSE_CLASSES, str(path), kind="coarse label")
    labels = records[:, label_bytes - 1].astype(np.int32)
    check_labels(labels, classes, str(path))
    planes = records[:, label_bytes:].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels


def _check_length(found: int, expected: int, why: str, path: pathlib.Path) -> None:
    if found < expected:
        raise TruncatedFileError(
            f"{path}: truncated, {found:,} bytes (unpacked), expected {expected:,} {why}. "
            "Copy or download the file again."
        )
    if found > expected:
        raise TrailingBytesError(
            f"{path}: {found - expected:,} trailing bytes, {found:,} in all, expected {expected:,} {why}. "
            "Copy or download the file again."
        )
