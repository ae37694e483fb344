"""What a masked net learns or keeps beside its masks, in a file: scales, offsets and batch statistics."""

import io
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float32
from numpy.lib.npyio import NpzFile

from ssm.errors import UserError
from ssm.files import DAMAGE, write_atomic
from ssm.runs.mask_file import reason


def value_path(folder: str | os.PathLike[str], seed: int) -> Path:
    """Return where a run's folder keeps the values of one seed."""
    return Path(folder) / "values" / f"seed-{seed:04d}.npz"


def save_values(path: str | os.PathLike[str], values: Mapping[str, Float32[np.ndarray, "..."]]) -> None:
    """Write float32 arrays by name, `COLLECTION/LAYER/NAME`, atomically, as an npz.

    Raises:
        ValueError: for another dtype.
    """
    arrays = {name: np.asarray(value) for name, value in values.items()}
    if other := [name for name, array in arrays.items() if array.dtype != np.float32]:
        raise ValueError(f"{', '.join(other)}: not float32")
    write_arrays(path, arrays)


def load_values(path: str | os.PathLike[str]) -> dict[str, Float32[np.ndarray, "..."]]:
    """Read what `save_values` wrote.

    Raises:
        UserError: naming the file, if it is missing or damaged.
    """
    values = read_arrays(path, "the values of a run", missing="an older version made this run; train the seed again")
    if any(value.dtype != np.float32 for value in values.values()):
        raise UserError(f"{path} is damaged: not float32")
    return values


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], *, compressed: bool = False) -> None:
    """Write arrays by name, atomically, as an npz."""
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, allow_pickle=False, **arrays)
    write_atomic(path, buffer.getvalue())


def read_arrays(path: str | os.PathLike[str], what: str, *, missing: str) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote.

    Raises:
        UserError: naming the file, and `what` it should be, if it is damaged; with what to do if it is `missing`.
    """
    try:
        file = np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False)
        if not isinstance(file, NpzFile):
            raise ValueError("an array by itself")
        with file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: {missing}") from None
    except DAMAGE as error:
        raise UserError(f"{path} is damaged: not {what} ({reason(error)})") from error
