"""A file of the weights that a seed of the related work's methods ended with, as they are evaluated."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from ssm.errors import UserError
from ssm.runs.magnitudes import Parts, put_together, taken_apart
from ssm.runs.mask_file import packed, unpacked
from ssm.runs.value_file import read_arrays, write_arrays

FIELDS = ("codes", "magnitudes", "shape")


def weight_path(folder: str | os.PathLike[str], seed: int) -> Path:
    """Return where a run's folder keeps the final weights of one seed."""
    return Path(folder) / "weights" / f"seed-{seed:04d}.npz"


def save_weights(path: str | os.PathLike[str], weights: Mapping[str, Float32[np.ndarray, "..."]]) -> None:
    """Write weights by layer, atomically, as a compressed npz: their signs and magnitudes (`ssm.runs.magnitudes`).

    Raises:
        ValueError: for another dtype than float32, and weights that are not finite.
    """
    arrays: dict[str, np.ndarray] = {}
    for layer, values in weights.items():
        parts = taken_apart(np.asarray(values))
        arrays[f"{layer}:codes"] = packed(parts.signs)
        arrays[f"{layer}:magnitudes"] = parts.magnitudes
        arrays[f"{layer}:shape"] = np.asarray(parts.signs.shape, np.int64)
    write_arrays(path, arrays, compressed=True)


def load_weights(path: str | os.PathLike[str]) -> dict[str, Float32[np.ndarray, "..."]]:
    """Read what `save_weights` wrote: the same weights by layer, bit for bit, -0 as 0.

    Raises:
        UserError: naming the file, if it is missing or damaged.
    """
    found = read_arrays(path, "the weights of a run", missing="copy it, too, or train the seed again")
    layers = dict.fromkeys(name.rpartition(":")[0] for name in found)
    try:
        if not layers or found.keys() != {f"{layer}:{field}" for layer in layers for field in FIELDS}:
            raise ValueError(f"its fields are {', '.join(found) or 'none'}")
        return {layer: _layer(*(found[f"{layer}:{field}"] for field in FIELDS)) for layer in layers}
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise UserError(f"{path} is damaged: not the weights of a run ({error})") from error


def _layer(codes: np.ndarray, magnitudes: np.ndarray, shape: np.ndarray) -> np.ndarray:
    if magnitudes.dtype != np.float32 or magnitudes.ndim != 1 or shape.dtype != np.int64 or shape.ndim != 1:
        raise ValueError("magnitudes or shape of another kind")
    return put_together(Parts(unpacked(codes, tuple(map(int, shape))), magnitudes))
