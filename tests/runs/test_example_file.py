import numpy as np
import pytest

from ssm.errors import UserError
from ssm.runs.example_file import example_path, load_examples, save_examples


def test_what_was_saved_is_read(tmp_path):
    path = example_path(tmp_path, 3)
    assert path == tmp_path / "examples" / "seed-0003.npz"
    inputs, outputs = np.arange(12, dtype=np.uint8).reshape(2, 2, 3, 1), np.asarray([[1.5], [2]], np.float32)
    save_examples(path, {"inputs": inputs, "outputs": outputs})
    for found, wanted in zip(load_examples(path), (inputs, outputs), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype


def test_what_is_missing_or_damaged_is_said(tmp_path):
    path = tmp_path / "seed-0003.npz"
    with pytest.raises(UserError, match="seed-0003.npz does not exist"):
        load_examples(path)
    for content in (b"", b"PK", b"\x00" * 100):
        path.write_bytes(content)
        with pytest.raises(UserError, match="damaged: not the examples of a run"):
            load_examples(path)
    for wrong in ({"inputs": np.ones(2)}, {"inputs": np.ones(2), "outputs": np.ones((3, 1))}):
        save_examples(path, wrong)
        with pytest.raises(UserError, match="damaged: not the examples of a run"):
            load_examples(path)
