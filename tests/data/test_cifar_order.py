"""The order of pixels, channels and classes in the real CIFAR files, read here without `ssm.data`'s readers."""

import os
import pathlib

import numpy as np
import pytest

from ssm.data import load
from ssm.data.standardize import standardize, statistics

LAYOUT = {  # folder, training files in order, test file, label bytes, records of a training file
    "cifar10": ("cifar-10-batches-bin", [f"data_batch_{i}.bin" for i in range(1, 6)], "test_batch.bin", 1, 10_000),
    "cifar100": ("cifar-100-binary", ["train.bin"], "test.bin", 2, 50_000),
}
NAMES = {"cifar10": "batches.meta.txt", "cifar100": "fine_label_names.txt"}


def folder(name):
    place = os.environ.get("SSM_TEST_DATA")
    if not place:
        pytest.skip(f"SSM_TEST_DATA names no folder with the real {name}")
    path = pathlib.Path(place) / LAYOUT[name][0]
    if not path.is_dir():
        pytest.skip(f"SSM_TEST_DATA={place} holds no {path.name}")
    return path


@pytest.fixture(scope="module", params=LAYOUT)
def real(request):
    path = folder(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSM_OFFLINE", "1")  # the fixture of every test comes after this one
        return load(request.param, data_dir=path.parent), path


def record(path, dataset, index, *, test=False):
    """One record's bytes: label bytes, then 1024 red, 1024 green and 1024 blue, each row by row."""
    _, train_names, test_name, labels, per_file = LAYOUT[dataset.name]
    file = test_name if test else train_names[index // per_file]
    size = labels + 3072
    with (path / file).open("rb") as stream:
        stream.seek((index if test else index % per_file) * size)
        return stream.read(size)


@pytest.mark.parametrize("index, test", [(0, 0), (9_999, 0), (10_000, 0), (31_415, 0), (49_999, 0), (0, 1), (9_999, 1)])
def test_every_pixel_of_some_images(real, index, test):
    dataset, path = real
    data = record(path, dataset, index, test=bool(test))
    labels = LAYOUT[dataset.name][3]
    image = (dataset.test_images if test else dataset.train_images)[index]
    label = (dataset.test_labels if test else dataset.train_labels)[index]
    assert label == data[labels - 1]  # CIFAR-100's first byte is the coarse label
    pixels = [
        [[data[labels + 1024 * channel + 32 * row + column] for channel in range(3)] for column in range(32)]
        for row in range(32)
    ]
    np.testing.assert_array_equal(image, pixels)


def test_classes_in_order(real):
    dataset, path = real
    if not (path / NAMES[dataset.name]).is_file():
        pytest.skip(f"{path} doesn't hold {NAMES[dataset.name]}")
    names = (path / NAMES[dataset.name]).read_text().split()
    assert dataset.class_names == tuple(names)
    assert dataset.classes == len(names)
    for labels in (dataset.train_labels, dataset.test_labels):
        np.testing.assert_array_equal(np.bincount(labels), len(labels) // len(names))


def test_neighbours_are_alike(real):
    """Rows or columns cut at a wrong length, or channels read as pixels, would tear neighbours apart."""
    images = real[0].train_images[:2000].astype(np.float64)
    for one, other in (
        (images[:, 1:], images[:, :-1]),
        (images[:, :, 1:], images[:, :, :-1]),
        (images[..., 1:], images[..., :-1]),
    ):
        assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.8


@pytest.mark.parametrize("name, upper, lower", [("cifar10", "airplane", "ship"), ("cifar100", "cloud", "plain")])
def test_the_sky_is_blue_and_above(name, upper, lower):
    """Rows upside down, rows for columns, or blue for red, would show in the mean of all images of a class."""
    path = folder(name)
    dataset = load(name, data_dir=path.parent)
    sky, land = (
        dataset.train_images[dataset.train_labels == dataset.class_names.index(kind)].mean(0) for kind in (upper, lower)
    )
    red, _, blue = sky[0].mean(0)
    assert blue > red + 5
    for mean in (sky, land) if name == "cifar10" else (land,):
        assert mean[:8].mean() > mean[-8:].mean() + 5
        assert abs(mean[:, :8].mean() - mean[:, -8:].mean()) < 5


def test_statistics_of_real_images(real):
    images = real[0].test_images[:300]
    mean, scale = statistics(images)
    exact = images.astype(np.float64).reshape(300, -1)
    np.testing.assert_allclose(mean, exact.mean(1), rtol=1e-6)
    np.testing.assert_allclose(scale, 1 / exact.std(1), rtol=1e-6)
    standard = np.asarray(standardize(images, mean, scale), np.float64).reshape(300, -1)
    np.testing.assert_allclose(
        standard, (exact - exact.mean(1, keepdims=True)) / exact.std(1, keepdims=True), atol=2e-6
    )
