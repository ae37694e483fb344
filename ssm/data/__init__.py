"""Image-classification data sets as plain numpy arrays, and their per-image standardisation.

`load` finds a set by name, `standardized` makes of its images what nets take; `ssm.data.standardize` holds that and the
other pure functions that run on the device.
"""

from typing import TYPE_CHECKING

from ssm.data.dataset import Dataset
from ssm.data.errors import (
    CorruptFileError,
    DataError,
    DownloadError,
    LabelRangeError,
    MissingFilesError,
    TrailingBytesError,
    TruncatedFileError,
    UnreadableError,
    WrongHashError,
    WrongMagicError,
)
from ssm.data.search import NAMES, load
from ssm.lazy import attributes

if TYPE_CHECKING:
    from ssm.data.standardize import standardized as standardized

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
    "UnreadableError",
    "WrongHashError",
    "WrongMagicError",
    "load",
    "standardized",
]

# It needs JAX, which finding and reading a data set does not.
__getattr__ = attributes(__name__, {"standardized": "ssm.data.standardize"})
