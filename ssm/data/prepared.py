"""Folders prepared by tensorflow-datasets, read without TensorFlow and without the network."""

import importlib.util
import itertools
import json
import os
import pathlib
import re
from typing import Any

import numpy as np

from ssm.data.dataset import Dataset
from ssm.data.errors import DataError, MissingFilesError

_PACKAGES = {"tensorflow_datasets": "tensorflow-datasets", "array_record": "array_record"} | {
    # tensorflow-datasets reads with these two, and does not declare them
    "importlib_resources": "importlib_resources",
    "PIL": "pillow",
}


def folders(data_dir: pathlib.Path | None) -> list[pathlib.Path]:
    """The folders searched for prepared sets: `data_dir`, the environment's TFDS_DATA_DIR, ~/tensorflow_datasets."""
    places = [data_dir, os.environ.get("TFDS_DATA_DIR"), "~/tensorflow_datasets"]
    return [pathlib.Path(os.path.expanduser(place)) for place in places if place]


def find_prepared(name: str, places: list[pathlib.Path]) -> pathlib.Path | None:
    """The folder NAME/VERSION or NAME/CONFIG/VERSION of the set `name` (NAME or NAME/CONFIG), or None.

    The newest version is taken. Raises `DataError` if several configurations are prepared and none is named.
    """
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise DataError(f"tfds:{name}: not the name of a data set, expected tfds:NAME or tfds:NAME/CONFIG")
    for place in places:
        found = [*place.glob(f"{name}/*/dataset_info.json"), *place.glob(f"{name}/*/*/dataset_info.json")]
        parents = {path.parent.parent for path in found}
        if len(parents) > 1:
            options = ", ".join(sorted(str(parent.relative_to(place)) for parent in parents))
            raise DataError(f"{place}: {name} is prepared in several configurations, expected one of: {options}")
        if found:
            return max((path.parent for path in found), key=_version)
    return None


def missing_prepared(name: str, places: list[pathlib.Path]) -> MissingFilesError:
    """The error for a set that is prepared in none of `places`: where it was searched for and how to prepare it."""
    looked = ", ".join(str(place / name / "*" / "dataset_info.json") for place in places)
    return MissingFilesError(
        f"tfds:{name}: no prepared data set. Looked for {looked}. Prepare it where TensorFlow is installed: "
        f"tfds.builder({name!r}, file_format='array_record').download_and_prepare(); then copy the folder."
    )


def read_prepared(folder: pathlib.Path, *, name: str) -> Dataset:
    """Read an image-classification set from a folder with dataset_info.json; `name` becomes the Dataset's.

    All images must be uint8 of one size. The test part is the split `test`, or else `validation`.
    Raises `DataError` naming `folder` if a package is missing, the records are not in the array_record format,
    or the set is not of that kind; `LabelRangeError` for hidden labels.
    """
    absent = [package for module, package in _PACKAGES.items() if importlib.util.find_spec(module) is None]
    if absent:
        raise DataError(f"{folder}: reading it needs packages that are missing: pip install {' '.join(absent)}")
    _check_file_format(folder)
    import tensorflow_datasets as tfds  # imported late: takes half a second, and only prepared folders need it

    # What tfds.data_source(name, download=False) does, without the builder's code, which may need TensorFlow.
    # (Without download=False it retries a download for 200 s.)
    try:
        builder: Any = tfds.builder_from_directory(folder)
    except (ValueError, KeyError, OSError) as error:
        raise DataError(f"{folder}: dataset_info.json is damaged: {_first_line(error)}") from error
    features = dict(builder.info.features.items())
    if "image" not in features or not hasattr(features.get("label"), "names"):
        raise DataError(
            f"{folder}: features are {', '.join(features)}, expected an image classification set "
            "with an image and a class label"
        )
    splits = list(builder.info.splits)
    test = next((split for split in ("test", "validation") if split in splits), None)
    if "train" not in splits or test is None:
        raise DataError(f"{folder}: splits are {', '.join(splits)}, expected train and test (or validation)")
    shape = features["image"].shape
    if len(shape) != 3 or None in shape or features["image"].np_dtype != np.uint8:
        raise DataError(
            f"{folder}: images are {features['image'].np_dtype} {shape}, expected uint8 of one size "
            "[height, width, channels]. Prepare a resized copy of the set."
        )

    def read(split: str) -> tuple[np.ndarray, np.ndarray]:
        source = builder.as_data_source(split=split)
        images, labels = np.empty((len(source), *shape), np.uint8), np.empty(len(source), np.int32)
        for index in range(len(source)):
            example = source[index]
            images[index], labels[index] = example["image"], example["label"]
        return images, labels

    try:
        train_images, train_labels = read("train")
        test_images, test_labels = read(test)
    except (RuntimeError, ImportError, OSError, ValueError) as error:
        raise DataError(
            f"{folder}: can't be read ({type(error).__name__}: {_first_line(error)}), "
            "expected complete array_record files. Copy or prepare it again."
        ) from error
    names = tuple(features["label"].names)
    return Dataset(
        name=name,
        source=f"{name}: prepared by tensorflow-datasets in {folder} (splits train and {test})",
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        classes=len(names),
        class_names=names,
    )


def _check_file_format(folder: pathlib.Path) -> None:
    path = folder / "dataset_info.json"
    try:
        found = json.loads(path.read_text()).get("fileFormat", "tfrecord")
    except (ValueError, AttributeError) as error:
        raise DataError(f"{path}: can't be read ({error}), expected JSON as tensorflow-datasets writes it") from None
    if found != "array_record":
        raise DataError(
            f"{folder}: prepared as {found}, which only TensorFlow reads; expected array_record. "
            "Prepare it again with file_format='array_record'."
        )


def _version(folder: pathlib.Path) -> tuple[int, ...]:
    digits = (itertools.takewhile(str.isdigit, part) for part in folder.name.split("."))
    return tuple(int("".join(part) or 0) for part in digits)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:150]
