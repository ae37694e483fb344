import os
from pathlib import Path

import numpy as np
import pytest

from ssm.errors import UserError
from ssm.files import plain, read_json, write_atomic, write_json


def test_text_is_written_as_utf8_and_bytes_as_they_are(tmp_path):
    write_atomic(tmp_path / "new" / "a.txt", "ä\n")
    write_atomic(tmp_path / "b.bin", b"\x00\r\n")
    assert (tmp_path / "new" / "a.txt").read_bytes() == b"\xc3\xa4\n"
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\r\n"


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_crash_while_writing_keeps_the_old_file_and_leaves_no_litter(tmp_path, monkeypatch, function):
    path = tmp_path / "a.txt"
    write_atomic(path, "old")

    def crash(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, function, crash)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_has_numpy_numbers_and_null_for_what_is_not_finite(tmp_path):
    value = {
        "b": np.float64(0.5),
        "a": [np.int8(-1), float("nan"), np.float32("inf"), np.bool_(True), None],
        3: {2, 1},
        "path": Path("x"),
        "array": np.array([[1, 2]]),
    }
    write_json(tmp_path / "a.json", value)
    text = (tmp_path / "a.json").read_text()
    assert text.startswith('{\n  "b": 0.5,\n  "a": [\n    -1,\n    null,\n    null,\n    true,\n    null\n  ],')
    assert read_json(tmp_path / "a.json") == {
        "b": 0.5,
        "a": [-1, None, None, True, None],
        "3": [1, 2],
        "path": "x",
        "array": [[1, 2]],
    }


def test_values_without_a_json_form_are_refused():
    with pytest.raises(TypeError, match="object has no JSON form"):
        plain([object()])


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.json is damaged"):
        read_json(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(UserError, match=r"a\.json does not exist"):
        read_json(tmp_path / "a.json")
    with pytest.raises(UserError, match="cannot be read"):
        read_json(tmp_path)
