"""What all tests share: eight host devices, which must be asked for before JAX starts, and small made data."""

import numpy as np
import pytest

from ssm.data import Dataset
from ssm.devices import use_host_devices

use_host_devices(8)


@pytest.fixture(scope="session")
def digits() -> Dataset:
    """Four classes of noisy 28 x 28 images that a net learns in an epoch or two; 205 to train on, 60 to test."""
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 256, (4, 28, 28, 1))

    def draw(count):
        labels = (np.arange(count) % 4).astype(np.int32)
        images = np.clip(centres[labels] + rng.normal(0, 60, (count, 28, 28, 1)), 0, 255).astype(np.uint8)
        return images, labels

    return Dataset("made", "made by the tests", *draw(205), *draw(60), classes=4, class_names=("a", "b", "c", "d"))
