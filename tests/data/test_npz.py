"""One's own data in a NumPy archive: what is damaged or no number is one message."""

import numpy as np
import pytest

from ssm.data import DataError, load

ARRAYS = {
    "x_train": np.arange(12, dtype=np.float32).reshape(4, 3),
    "y_train": np.array([0, 1, 0, 1]),
    "x_test": np.ones((2, 3), np.float32),
    "y_test": np.array([1, 0]),
}


def written(folder, **changed):
    np.savez_compressed(folder / "own.npz", **ARRAYS | changed)  # type: ignore[arg-type]
    return folder / "own.npz"


def test_an_archive_is_a_data_set(tmp_path):
    found = load(f"npz:{written(tmp_path)}")
    assert (found.name, found.classes) == ("npz:own", 2)
    np.testing.assert_array_equal(found.train_images, ARRAYS["x_train"])


def test_every_damaged_byte_is_read_or_one_message(tmp_path):
    path = written(tmp_path)
    whole, refused = path.read_bytes(), 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            load(f"npz:{path}")
        except DataError as error:
            refused += 1
            assert str(path) in str(error)
    assert refused > len(whole) / 2


def test_one_array_is_no_archive(tmp_path):
    path = tmp_path / "own.npz"
    with path.open("wb") as file:
        np.save(file, ARRAYS["x_train"])
    with pytest.raises(DataError, match="cannot be read as a NumPy archive"):
        load(f"npz:{path}")


@pytest.mark.parametrize("x", [np.array(["a"] * 4), np.ones((4, 3), complex), np.array([None] * 4), np.float32(1)])
def test_inputs_that_are_no_real_numbers(tmp_path, x):
    with pytest.raises(DataError, match=r"real numbers|without pickles"):
        load(f"npz:{written(tmp_path, x_train=x)}")
