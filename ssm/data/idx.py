"""One's own data in MNIST's file format: `idx:DIR`."""

import pathlib
from functools import partial

from ssm.data.dataset import Dataset
from ssm.data.errors import MissingFilesError
from ssm.data.folder import check_complete, first_whole, loose_files, parse_idx_file
from ssm.data.npz import ARRAYS, from_arrays
from ssm.data.published import PUBLISHED

PREFIX = "idx:"


def load_idx(folder: pathlib.Path) -> Dataset:
    """Read one's own data set, `idx:DIR`: IDX files named as MNIST's, uint8 images of one size and labels from 0.

    There are as many classes as the largest label says.  Raises as `read_folder` does; nothing is hashed.
    """
    if not folder.is_dir():
        raise MissingFilesError(f"{folder}: no such folder, expected one with IDX files named as MNIST's")
    spec = PUBLISHED["mnist"]
    files = loose_files(spec, folder)
    check_complete(files, folder, "a set in MNIST's format")
    parts = [first_whole(forms, partial(parse_idx_file, name)) for name, forms in files.items()]
    name = f"{PREFIX}{folder.resolve().name}"
    return from_arrays(dict(zip(ARRAYS, parts, strict=True)), name=name, source=f"{name}: IDX files in {folder}")
