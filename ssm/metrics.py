"""Counts of mask elements inside the compiled program, and their shares on the host."""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array


class MaskCounts(NamedTuple):
    """Of one layer: elements that are -1, 0, +1, and that changed since the masks they are compared with; int32."""

    minus: Array
    zero: Array
    plus: Array
    flips: Array


def count(mask: Array, before: Array) -> MaskCounts:
    """Count the elements of a mask of any shape, and those that differ from `before`."""
    return MaskCounts(*(jnp.sum(hit, dtype=jnp.int32) for hit in (mask < 0, mask == 0, mask > 0, mask != before)))


def dead_layers(masks: Mapping[str, Array]) -> list[str]:
    """Return the names of the layers whose masks are all 0: nothing gets through, and no score gets a gradient back."""
    return [name for name, mask in masks.items() if not np.any(np.asarray(mask))]


def shares(layers: Mapping[str, MaskCounts], seed: int) -> dict[str, float]:
    """Return one seed's shares (0 to 1) from counts of shape [seeds]: in all, and per layer as `LAYER:share`.

    Remaining weights are the share of masks that are not 0 (density).
    """
    counts = {name: [int(np.asarray(field)[seed]) for field in layer] for name, layer in layers.items()}
    total = sum(sum(c[:3]) for c in counts.values())
    row = {
        "remaining_weights": sum(c[0] + c[2] for c in counts.values()) / total,
        "flips": sum(c[3] for c in counts.values()) / total,
    }
    for name, (minus, zero, plus, flips) in counts.items():
        size = minus + zero + plus
        row |= {
            f"{name}:remaining": (minus + plus) / size,
            f"{name}:minus": minus / size,
            f"{name}:zero": zero / size,
            f"{name}:plus": plus / size,
            f"{name}:flips": flips / size,
        }
    return row
