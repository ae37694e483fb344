"""What an artefact's file holds, as values in memory: the layers, and what else inference needs."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int8

from ssm.models.graph import Architecture
from ssm.paths import name_path


class Layer(NamedTuple):
    """A layer's kernel: `ternary` times `constant`, int8 [in, out] or [height, width, in, out] and a float32.

    Two constants are the magnitudes of the negative and of the positive weights.  Where there is none, `ternary` is a
    mask: on values of their `own`, one for each 1 of it, row by row, none of them 0; or else on frozen weights that are
    drawn again from the seed (`Contents.recipe`).
    """

    ternary: Int8[np.ndarray, "..."]
    constant: float | tuple[float, float] | None
    own: Float32[np.ndarray, " kept"] | None = None

    @property
    def drawn(self) -> bool:
        """Whether its weights are drawn again from the seed."""
        return self.constant is None and self.own is None

    def times(self, frozen: np.ndarray | None) -> Float32[np.ndarray, "..."]:
        """Return the effective weights; `frozen` weights are needed where they are `drawn`."""
        if isinstance(self.constant, tuple):
            minus, plus = self.constant
            return np.asarray([-minus, 0, plus], np.float32)[self.ternary + np.int8(1)]
        if self.constant is not None:
            return self.ternary.astype(np.float32) * np.float32(self.constant)
        if self.own is not None:
            kernel = np.zeros(self.ternary.shape, np.float32)
            kernel[self.ternary != 0] = self.own
            return kernel
        assert frozen is not None
        return self.ternary.astype(np.float32) * frozen


@dataclass(frozen=True, kw_only=True, eq=False)
class Contents:
    """All that inference needs of a trained net, as a file holds it.

    layers: by name, such as `Dense_0`, in the net's order of names.
    values: what else it learned or kept, float32, by `COLLECTION/LAYER/NAME`: scales, offsets, batch statistics.
    architecture: one of the paper's networks; None for a module of the user's, which the file does not hold.
    precision: of its products, float32 or bfloat16.
    class_names: one per output.
    about: for people, where the net came from: method, dataset, seed, run, accuracy, ...
    recipe: the configuration, and the hashes of the frozen weights that are drawn again from the seed, if any are.
    """

    layers: Mapping[str, Layer]
    values: Mapping[str, Float32[np.ndarray, "..."]] = field(default_factory=dict)
    architecture: Architecture | None
    precision: str = "float32"
    class_names: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] | None = None


def kernel_path(layer: str) -> tuple[str, ...]:
    """Return a layer's path in the params: `Dense_0` names `Dense_0/kernel`; other parameters are named in full."""
    path = name_path(layer)
    return path if path[-1] == "embedding" else (*path, "kernel")


def digest(array: np.ndarray) -> str:
    """Return 16 hex digits of the SHA-256 of an array's bytes in row-major order."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
