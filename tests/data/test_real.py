"""The real files, where SSM_TEST_DATA names a folder that holds them (mnist/, cifar-10-batches-bin/, ...)."""

import os
import pathlib

import numpy as np
import pytest

from ssm.data import load
from ssm.data.locate import find_folder
from ssm.data.published import PUBLISHED

DEBIAN = pathlib.Path("/usr/share/datasets/fashion-mnist")
FACTS = {  # shape of a training image, numbers of images, first training labels
    "mnist": ((28, 28, 1), (60_000, 10_000), [5, 0, 4, 1, 9]),
    "cifar10": ((32, 32, 3), (50_000, 10_000), [6, 9, 9, 4, 1]),
    "cifar100": ((32, 32, 3), (50_000, 10_000), [19, 29, 0, 11, 1]),
    "fashion_mnist": ((28, 28, 1), (60_000, 10_000), [9, 0, 0, 3, 0]),
}


def real_folder(name):
    if name == "fashion_mnist":
        if not DEBIAN.is_dir():
            pytest.skip("Debian's package dataset-fashion-mnist is not installed")
        return DEBIAN
    place = os.environ.get("SSM_TEST_DATA")
    if not place:
        pytest.skip(f"SSM_TEST_DATA names no folder with the real {name}")
    if find_folder(PUBLISHED[name], pathlib.Path(place)) is None:
        pytest.skip(f"SSM_TEST_DATA={place} doesn't hold the real {name}")
    return pathlib.Path(place)


@pytest.mark.parametrize("name", FACTS)
def test_real_files(name):
    shape, counts, first_labels = FACTS[name]
    dataset = load(name, data_dir=real_folder(name))
    assert "the published files, SHA-256 checked" in dataset.source
    assert dataset.train_images.shape[1:] == dataset.test_images.shape[1:] == shape
    assert (len(dataset.train_images), len(dataset.test_images)) == counts
    assert dataset.train_labels[:5].tolist() == first_labels
    if name != "mnist":  # the only set that isn't balanced
        assert len(np.unique(np.bincount(dataset.train_labels))) == 1
