"""Masks in a file: two bits a weight."""

import io
import math
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Int8, UInt8
from numpy.lib.npyio import NpzFile

from ssm.errors import UserError
from ssm.files import DAMAGE, write_atomic

_SHIFTS = np.arange(0, 8, 2, dtype=np.uint8)

_EMPTY = 22  # bytes of a zip file without entries



def save_masks(path: str | os.PathLike[str], masks: Mapping[str, np.ndarray]) -> None:
    """Write masks by layer, any shape, values in {-1, 0, 1}, atomically, as a compressed npz.

    Raises:
        ValueError: for other values.
    """
    arrays: dict[str, np.ndarray] = {}
    for layer, mask in masks.items():
        mask = np.asarray(mask)
        if not np.isin(mask, (-1, 0, 1)).all():
            raise ValueError(f"the mask of {layer} has values other than -1, 0 and 1")
        arrays[f"{layer}:codes"] = packed(mask)
        arrays[f"{layer}:shape"] = np.asarray(mask.shape, np.int64)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_atomic(path, buffer.getvalue())


def load_masks(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read what `save_masks` wrote: int8 arrays in {-1, 0, 1} by layer.

    Raises:
        UserError: naming the file, if it is missing or damaged.
    """
    try:
        masks = {}
        # From memory: numpy leaves a file it cannot make sense of open.
        data = Path(path).read_bytes()
        file = np.load(io.BytesIO(data), allow_pickle=False)
        if not isinstance(file, NpzFile):
            raise ValueError("an array by itself")
        with file:
            for name in file.files:
                layer, _, part = name.rpartition(":")
                if part == "shape":
                    shape = tuple(int(size) for size in file[name])
                    masks[layer] = unpacked(file[f"{layer}:codes"], shape)
        if not masks and len(data) > _EMPTY:
            raise ValueError("its directory lists nothing")
        return masks
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except DAMAGE as error:
        raise UserError(f"{path} is damaged: not the masks of a run ({reason(error)})") from error


def reason(error: Exception) -> str:
    """Return why a file could not be read, without NumPy's advice to load objects, which is never done here."""
    return "it holds objects" if "allow_pickle" in str(error) else str(error)


def packed(mask: np.ndarray) -> UInt8[np.ndarray, " bytes"]:
    """Return an array of any shape with values in {-1, 0, 1}, four of them a byte."""
    codes = np.zeros(-(-mask.size // 4) * 4, np.uint8)
    codes[: mask.size] = mask.reshape(-1).astype(np.int8) + 1
    return np.bitwise_or.reduce(codes.reshape(-1, 4) << _SHIFTS, axis=1)


def unpacked(codes: UInt8[np.ndarray, " bytes"], shape: tuple[int, ...]) -> Int8[np.ndarray, "..."]:
    """Return the int8 array of a shape that was `packed`; raises ValueError for what is none."""
    size = math.prod(shape)
    if codes.dtype != np.uint8 or codes.shape != (-(-size // 4),):
        raise ValueError(f"{codes.size} bytes for a mask of shape {shape}")
    flat = ((codes[:, None] >> _SHIFTS) & 3).reshape(-1)[:size]
    if (flat == 3).any():
        raise ValueError("a code that stands for no mask value")
    return (flat.astype(np.int8) - 1).reshape(shape)
