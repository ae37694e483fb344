"""Weights as signs and magnitudes: one magnitude of a layer, two, or one of each weight."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int8


class Parts(NamedTuple):
    """The signs of a layer's weights, in {-1, 0, 1}, and the magnitudes of those that are not 0.

    magnitudes: [1], where all are equal; [2], where those of all negative and those of all positive weights are, in
    this order; else one of each weight, row by row.
    """

    signs: Int8[np.ndarray, "..."]
    magnitudes: Float32[np.ndarray, " magnitudes"]

    @property
    def of_signs(self) -> bool:
        """Whether the magnitudes are two: that of the negative and that of the positive weights."""
        return self.magnitudes.size == 2 and bool((self.signs < 0).any() and (self.signs > 0).any())


def taken_apart(weights: Float32[np.ndarray, "..."]) -> Parts:
    """Return the parts of which `put_together` makes the same weights, bit for bit, but for -0, which becomes 0.

    Raises:
        ValueError: for another dtype, and weights that are not finite.
    """
    if weights.dtype != np.float32 or not np.isfinite(weights).all():
        raise ValueError("weights must be float32 and finite")
    signs = np.sign(weights).astype(np.int8)
    magnitudes = np.abs(weights[signs != 0])
    minus, plus = -weights[signs < 0], weights[signs > 0]
    if magnitudes.size and (magnitudes == magnitudes[0]).all():
        magnitudes = magnitudes[:1]
    elif minus.size and plus.size and (minus == minus[0]).all() and (plus == plus[0]).all():
        magnitudes = np.stack([minus[0], plus[0]])
    return Parts(signs, magnitudes)


def put_together(parts: Parts) -> Float32[np.ndarray, "..."]:
    """Return the weights of their parts.

    Raises:
        ValueError: for magnitudes that are not above 0 and finite, or not as many as the signs need.
    """
    signs, magnitudes = parts
    kept = signs[signs != 0]
    if not (np.isfinite(magnitudes) & (magnitudes > 0)).all():
        raise ValueError("magnitudes that are not above 0 and finite")
    if parts.of_signs:
        magnitudes = np.where(kept < 0, *magnitudes)
    elif magnitudes.size not in (min(kept.size, 1), kept.size):
        raise ValueError(f"{magnitudes.size} magnitudes of {kept.size} weights")
    weights = np.zeros(signs.shape, np.float32)
    weights[signs != 0] = kept * magnitudes
    return weights
