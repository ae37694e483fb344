import numpy as np
import pytest

from ssm.data import DataError, MissingFilesError, TruncatedFileError, load


def files_of(helpers, labels=(3, 0, 11)):
    return helpers.tiny_idx() | {"train-labels-idx1-ubyte": helpers.idx_bytes(labels)}


@pytest.mark.parametrize("packed", [False, True])
def test_reads_ones_own_files(tmp_path, helpers, monkeypatch, packed):
    folder = helpers.write(tmp_path / "mine", files_of(helpers), packed=packed)
    monkeypatch.chdir(tmp_path)
    whole = load(f"idx:{folder}")
    assert (whole.name, whole.classes, whole.class_names[11]) == ("idx:mine", 12, "11")
    assert whole.train_images.dtype == np.uint8 and whole.train_images.shape == (3, 2, 3, 1)
    assert whole.train_labels.tolist() == [3, 0, 11] and whole.test_labels.tolist() == [1, 2]
    assert whole.source == f"idx:mine: IDX files in {folder}"
    for name in ("idx:mine", "idx:mine/", "idx:./mine/../mine"):  # one data set, one name, however it is reached
        again = load(name, data_dir=None)
        assert (again.name, again.fingerprint()) == (whole.name, whole.fingerprint())
    monkeypatch.chdir(folder)
    assert load("idx:.").name == "idx:mine"


def test_what_is_wrong_is_said(tmp_path, helpers):
    with pytest.raises(MissingFilesError, match="mine: no such folder, expected one with IDX files"):
        load(f"idx:{tmp_path / 'mine'}")
    (tmp_path / "other.txt").touch()
    with pytest.raises(MissingFilesError, match=r"expected them of a set in MNIST's format.* holds other\.txt\.$"):
        load(f"idx:{tmp_path}")
    files = files_of(helpers)
    helpers.write(tmp_path, files | {"train-images-idx3-ubyte": files["train-images-idx3-ubyte"][:-1]})
    with pytest.raises(TruncatedFileError, match="train-images-idx3-ubyte: truncated"):
        load(f"idx:{tmp_path}")
    helpers.write(tmp_path, files_of(helpers, labels=(3, 0)))
    with pytest.raises(DataError, match=r"labels are int32 \[2\], expected int32 \[3\]"):
        load(f"idx:{tmp_path}")
