"""One's own data in a NumPy archive: `npz:FILE` with x_train, y_train, x_test and y_test."""

from pathlib import Path

import numpy as np

from ssm.data.dataset import ArrayDataset, Dataset
from ssm.data.errors import DataError, MissingFilesError
from ssm.files import DAMAGE

ARRAYS = ("x_train", "y_train", "x_test", "y_test")
ALIASES = dict(zip(ARRAYS, ("train_images", "train_labels", "test_images", "test_labels"), strict=True))
PREFIX = "npz:"


def load_npz(path: Path) -> Dataset:
    """Return the data set of a file that `np.savez(FILE, x_train=..., y_train=..., x_test=..., y_test=...)` wrote.

    Labels are whole numbers [n] or [n, 1] from 0.  uint8 images [n, height, width] or [n, height, width, channels] are
    standardised image by image, as the paper's are; inputs of any other dtype or rank reach the net as they are.  The
    names train_images, train_labels, test_images and test_labels are read, too.  Nothing in the file is unpickled.

    Raises:
        DataError: naming the file, if it is missing or damaged, lacks an array, or has labels of another kind.
    """
    if not path.is_file():
        raise MissingFilesError(f"{path}: no such file, expected a NumPy archive with {', '.join(ARRAYS)}")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            names = {name: name if name in file.files else ALIASES[name] for name in ARRAYS}
            if lacking := [name for name, own in names.items() if own not in file.files]:
                there = ", ".join(file.files) or "none"
                raise DataError(f"{path}: no array {', '.join(lacking)}; its arrays are {there}")
            arrays = {name: file[own] for name, own in names.items()}
    except (*DAMAGE, TypeError) as error:
        raise DataError(f"{path} cannot be read as a NumPy archive (.npz) without pickles: {error}") from error
    for part in ("train", "test"):
        labels = arrays[f"y_{part}"]
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
            raise DataError(
                f"{path}: y_{part} is {labels.dtype} {list(labels.shape)}, expected whole numbers [n]: the command "
                "line trains classifiers; for other targets call ssm.train with a loss"
            )
        arrays[f"y_{part}"] = labels.astype(np.int32)
    return from_arrays(arrays, name=f"{PREFIX}{path.stem}", source=f"{path}")


def from_arrays(arrays: dict[str, np.ndarray], *, name: str, source: str) -> Dataset:
    """Return the data set of arrays named as in `ARRAYS`; raises DataError as the data set does."""
    x_train, y_train, x_test, y_test = (arrays[key] for key in ARRAYS)
    classes = int(max(y_train.max(initial=0), y_test.max(initial=0))) + 1
    names = tuple(map(str, range(classes)))
    if x_train.dtype == np.uint8 == x_test.dtype and x_train.ndim in (3, 4):
        images = (x[..., None] if x.ndim == 3 else x for x in (x_train, x_test))
        x_train, x_test = images
        return Dataset(name, source, x_train, y_train, x_test, y_test, classes, names)
    return ArrayDataset(name, source, x_train, y_train, x_test, y_test, classes, names)
