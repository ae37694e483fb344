"""The bytes of a file, and that no other bytes are taken for one."""

import hashlib
import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssm.errors import UserError
from ssm.export.container import HEAD, MAGIC, MOST_HEADER, Parts, pack, pack_text, read, sign, unpack

HEADER = {"name": "ç", "shape": [2, 3]}
TEXT = '{"name":"ç","shape":[2,3]}'.encode()


def parts(header=HEADER, values=(1.5, -2.0), words=(1, 0xFFFFFFFF)):
    return Parts(header, np.asarray(values, np.float32), np.asarray(words, np.uint32))


def hostile(text: bytes, said: int | None = None, packed: bytes | None = None) -> bytes:
    """Return a file of a header as it is, with a right checksum."""
    packed = zlib.compress(text) if packed is None else packed
    said = len(text) if said is None else said
    return sign(HEAD.pack(MAGIC, 1, 0, len(packed), said, 0, 0, bytes(32)), packed)


def test_the_layout():
    data = pack(parts())
    packed = zlib.compress(TEXT, 9)
    assert data[:8] == b"\x89SSM\r\n\x1a\n"
    assert struct.unpack("<HHIIII", data[8:28]) == (1, 0, len(packed), len(TEXT), 8, 8)
    assert data[60:].hex() == packed.hex() + "0000c03f000000c0" + "01000000ffffffff"
    assert data[28:60] == hashlib.sha256(data[:28] + bytes(32) + data[60:]).digest()


def test_what_was_packed_comes_again():
    found = unpack(pack(parts()))
    assert found.header == HEADER
    assert found.values.dtype == np.float32 and found.values.tolist() == [1.5, -2.0]
    assert found.words.dtype == np.uint32 and found.words.tolist() == [1, 0xFFFFFFFF]
    empty = unpack(pack(parts({}, (), ())))
    assert empty.header == {} and not empty.values.size and not empty.words.size


def test_every_shorter_or_longer_file_is_an_error(tmp_path):
    data = pack(parts())
    path = tmp_path / "net.ssm"
    path.write_bytes(data)
    assert read(path) == data
    for wrong in (*(data[:size] for size in range(len(data))), data + b"\0", b"\0" + data, data + data):
        with pytest.raises(UserError, match=r"not an artefact|its head says otherwise"):
            unpack(wrong)
        path.write_bytes(wrong)
        with pytest.raises(UserError, match=r"not an artefact|its head says otherwise"):
            read(path)


def test_every_flipped_bit_is_an_error():
    data = pack(parts())
    for bit in range(8 * len(data)):
        wrong = bytearray(data)
        wrong[bit // 8] ^= 1 << bit % 8
        with pytest.raises(UserError, match=r"not an artefact|damaged|version"):
            unpack(bytes(wrong))


@given(st.binary(max_size=200))
def test_other_bytes_are_an_error(data):
    for wrong in (data, MAGIC + data, MAGIC + b"\1\0\0\0" + data):
        with pytest.raises(UserError):
            unpack(wrong)


@pytest.mark.parametrize(("version", "zero"), [(0, 0), (5, 0), (65535, 0), (1, 1), (4, 1)])
def test_another_version_is_said(version, zero):
    data = pack(parts())
    with pytest.raises(UserError, match=f"version {version} of the format; this program reads versions 1 to 4"):
        unpack(sign(data[:8] + struct.pack("<HH", version, zero) + data[12:60], data[60:]))


def test_lengths_that_do_not_fit_take_no_memory():
    body = pack(parts())[60:]
    for lengths in ([len(body) - 16, 26, 2**32 - 4, 8], [2**32 - 1] * 4, [len(body) - 15, 26, 7, 8]):
        with pytest.raises(UserError, match="its head says otherwise"):
            unpack(sign(HEAD.pack(MAGIC, 1, 0, *lengths, bytes(32)), body))


def test_a_header_inflates_to_what_the_head_says():
    text = b'{"a":"' + b"x" * 100_000 + b'"}'
    assert unpack(hostile(text)).header == {"a": "x" * 100_000}
    for said in (len(text) - 1, len(text) + 1, 0, 10):
        with pytest.raises(UserError, match="its header is damaged: its length is not"):
            unpack(hostile(text, said))
    with pytest.raises(UserError, match="its length is not"):
        unpack(hostile(text, packed=zlib.compress(text) + b"more"))
    with pytest.raises(UserError, match="its length is not"):
        unpack(hostile(text, packed=zlib.compress(text)[:-1]))
    with pytest.raises(UserError, match="its header is damaged"):
        unpack(hostile(text, packed=b"no zlib"))
    with pytest.raises(UserError, match=f"at most {MOST_HEADER:,} are read"):
        unpack(hostile(b"{" + b" " * MOST_HEADER + b"}"))
    with pytest.raises(ValueError, match=f"at most {MOST_HEADER:,} can be saved"):
        pack_text(b" " * (MOST_HEADER + 1), b"", b"")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "Expecting value"),
        (b"[1]", "not a JSON object"),
        (b'"{}"', "not a JSON object"),
        (b'{"a":1}x', "Extra data"),
        (b'\xef\xbb\xbf{"a":1}', "BOM"),
        (b'{"a":"\xff"}', "utf-8"),
        (b'{"a":1,"a":1}', "a name appears twice"),
        (b'{"a":{"b":1,"b":1}}', "a name appears twice"),
        (b'{"a":NaN}', "NaN is not a number"),
        (b'{"a":-Infinity}', "Infinity is not a number"),
        (b'{"a":1e999}', "inf is too large"),
        (b'{"a":9223372036854775808}', "9223372036854775808 is too large"),
        (b'{"a":[' + b"9" * 4000 + b"]}", "is too large"),
        (b'{"a":' + b"9" * 5000 + b"}", "Exceeds the limit"),
        (b'{"a":"\\ud800"}', "cannot be printed"),
        (b'{"\\ud800":1}', "cannot be printed"),
        (b'{"a":"\\u001b[2J"}', "cannot be printed"),
        (b'{"a":"\\u009b"}', "cannot be printed"),
        (b'{"a":' + b"[" * 32 + b"]" * 32 + b"}", "more than 32"),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "more than 32"),
        (b'{"a":' + b"[" * 100_000, "recursion"),
    ],
)
def test_a_hostile_header_is_one_message(text, message):
    with pytest.raises(UserError, match=f"^its header is damaged: .*{message}") as caught:
        unpack(hostile(text))
    assert len(str(caught.value)) < 200


def test_what_is_allowed():
    header = {"text": "a\tb\nc 漢字 \u3000 🙂", "number": -(2**63) + 1, "deep": json.loads("[" * 31 + "]" * 31)}
    assert unpack(pack(parts(header))).header == header


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_must_be_finite(value):
    with pytest.raises(ValueError, match="not finite"):
        pack(parts(values=[0, value]))
    with pytest.raises(UserError, match="not finite"):
        unpack(pack_text(TEXT, np.asarray([0, value], "<f4").tobytes(), b""))
