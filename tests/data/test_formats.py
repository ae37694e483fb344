import gzip
import pathlib

import numpy as np
import pytest

from ssm.data import (
    CorruptFileError,
    LabelRangeError,
    TrailingBytesError,
    TruncatedFileError,
    WrongMagicError,
)
from ssm.data.formats import parse_cifar, parse_idx, read_bytes

FILE = pathlib.Path("folder/the-file")
IDX3 = b"\0\0\x08\x03" + b"\0\0\0\x02" + b"\0\0\0\x01" + b"\0\0\0\x03" + bytes([1, 2, 3, 250, 251, 252])
IDX1 = b"\0\0\x08\x01" + b"\0\0\0\x04" + bytes([7, 0, 9, 3])


def test_idx_literal():
    assert parse_idx(IDX3, 3, FILE).tolist() == [[[1, 2, 3]], [[250, 251, 252]]]
    labels = parse_idx(IDX1, 1, FILE)
    assert labels.tolist() == [7, 0, 9, 3] and labels.dtype == np.uint8


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (IDX1 + bytes(9), WrongMagicError, "wrong magic number 0x00000801, expected 0x00000803"),
        (b"<html>not found</html>", WrongMagicError, "wrong magic number 0x3c68746d, expected 0x00000803"),
        (b"", TruncatedFileError, "truncated, 0 bytes, expected a header of 16 bytes"),
        (IDX3[:15], TruncatedFileError, "truncated, 15 bytes, expected a header of 16 bytes"),
        (
            IDX3[:-1],
            TruncatedFileError,
            r"truncated, 21 bytes \(unpacked\), expected 22 as its header \[2, 1, 3\]",
        ),
        (IDX3 + b"\0\0", TrailingBytesError, r"2 trailing bytes, 24 in all, expected 22 as its header"),
    ],
)
def test_idx_errors_name_the_file(data, kind, message):
    with pytest.raises(kind, match=message) as error:
        parse_idx(data, 3, FILE)
    assert str(error.value).startswith(f"{FILE}: ")


def record(*labels, red=0, green=0, blue=0):
    return bytes(labels) + bytes([red]) * 1024 + bytes([green]) * 1024 + bytes([blue]) * 1024


def test_cifar10_literal():
    pixels = bytearray(record(4, red=10, green=20, blue=30))
    pixels[1 + 1024 + 32 * 5 + 6] = 99  # the green plane's row 5, column 6
    images, labels = parse_cifar(bytes(pixels) + record(9, red=1), 10, FILE)
    assert images.shape == (2, 32, 32, 3) and images.dtype == np.uint8 and images.flags.c_contiguous
    assert labels.tolist() == [4, 9] and labels.dtype == np.int32
    assert images[0, 0, 0].tolist() == [10, 20, 30]
    assert images[0, 5, 6].tolist() == [10, 99, 30]
    assert images[1, 31, 31].tolist() == [1, 0, 0]


def test_cifar100_takes_the_fine_label():
    images, labels = parse_cifar(record(19, 99, blue=5) + record(0, 3), 100, FILE)
    assert labels.tolist() == [99, 3] and images[0, 8, 9].tolist() == [0, 0, 5]


@pytest.mark.parametrize(
    ("data", "classes", "kind", "message"),
    [
        (
            record(1)[:-1],
            10,
            TruncatedFileError,
            "truncated, 3,072 bytes, expected whole records of 3,073 bytes",
        ),
        (record(1) * 2 + b"\1", 10, TruncatedFileError, "truncated, 6,147 bytes"),
        (b"", 100, TruncatedFileError, "truncated, 0 bytes, expected whole records of 3,074 bytes"),
        (record(1) + record(10), 10, LabelRangeError, r"label 10 at position 1 .*, expected 0 to 9"),
        (record(1, 100), 100, LabelRangeError, r"label 100 at position 0 .*, expected 0 to 99"),
        (record(20, 9), 100, LabelRangeError, r"coarse label 20 at position 0 .*, expected 0 to 19"),
    ],
)
def test_cifar_errors_name_the_file(data, classes, kind, message):
    with pytest.raises(kind, match=message) as error:
        parse_cifar(data, classes, FILE)
    assert str(error.value).startswith(f"{FILE}: ")


def test_gzip_is_told_by_content_not_by_name(tmp_path):
    (tmp_path / "raw.gz").write_bytes(IDX1)
    (tmp_path / "packed").write_bytes(gzip.compress(IDX1))
    assert read_bytes(tmp_path / "raw.gz") == read_bytes(tmp_path / "packed") == IDX1


def test_gzip_that_ends_early(tmp_path):
    path = tmp_path / "short.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 9)[:-20])
    with pytest.raises(TruncatedFileError, match=r"short\.gz: truncated, the gzip stream ends early"):
        read_bytes(path)


@pytest.mark.parametrize("position", [3, 14, -6], ids=["header", "stream", "checksum"])
def test_gzip_that_is_damaged(tmp_path, position):
    data = bytearray(gzip.compress(bytes(range(256)) * 9))
    data[position] ^= 0xFF
    (tmp_path / "bad.gz").write_bytes(data)
    with pytest.raises((CorruptFileError, TruncatedFileError), match=r"bad\.gz: .*expected"):
        read_bytes(tmp_path / "bad.gz")
