"""A file of one seed's first test samples, and of what its net made of them when it had been trained."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ssm.errors import UserError
from ssm.runs.value_file import read_arrays, write_arrays

FIELDS = {"inputs", "outputs"}


def example_path(folder: str | os.PathLike[str], seed: int) -> Path:
    """Return where a run's folder keeps the examples of one seed."""
    return Path(folder) / "examples" / f"seed-{seed:04d}.npz"


def save_examples(path: str | os.PathLike[str], examples: Mapping[str, np.ndarray]) -> None:
    """Write `inputs` [n, ...] of any dtype and `outputs` [n, classes], atomically, as a compressed npz."""
    write_arrays(path, examples, compressed=True)


def load_examples(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Read the inputs and outputs that `save_examples` wrote.

    Raises:
        UserError: naming the file, if it is missing or damaged.
    """
    found = read_arrays(path, "the examples of a run", missing="copy it, too, or train the seed again")
    if set(found) != FIELDS or found["outputs"].ndim != 2 or len(found["inputs"]) != len(found["outputs"]):
        raise UserError(f"{path} is damaged: not the examples of a run ({', '.join(found) or 'nothing in it'})")
    return found["inputs"], found["outputs"]
