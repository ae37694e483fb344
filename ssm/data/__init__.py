"""Image-classification data sets as plain numpy arrays, and their per-image standardisation.

`load` finds a set by name; `ssm.data.standardize` holds the pure functions that run on the device.
"""

from ssm.data.dataset import Dataset
from ssm.data.errors import (
    CorruptFileError,
    DataError,
    DownloadError,
    LabelRangeError,
    MissingFilesError,
    TrailingBytesError,
    TruncatedFileError,
    WrongHashError,
    WrongMagicError,
)
from ssm.data.search import NAMES, load
from ssm.lazy import attributes

__all__ = [
    "NAMES",
    "CorruptFileError",
    "DataError",
    "Dataset",
    "DownloadError",
    "LabelRangeError",
    "MissingFilesError",
    "TrailingBytesError",
    "TruncatedFileError",
    "WrongHashError",
    "WrongMagicError",
    "load",
]

__getattr__ = attributes(__name__)
