"""Counts of mask elements inside the compiled program, and their shares on the host."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class MaskCounts(NamedTuple):
    """Of one layer, int32: elements that are -1, 0, +1, that changed, and values of its params that are not finite."""

    minus: Array
    zero: Array
    plus: Array
    flips: Array
    infinite: Array


def count(mask: Array, before: Array, params: Any) -> MaskCounts:
    """Count a mask's elements, those that differ from `before`, and values of the tree `params` that are not finite."""
    hits = (mask < 0, mask == 0, mask > 0, mask != before)
    infinite = sum(jnp.sum(~jnp.isfinite(leaf), dtype=jnp.int32) for leaf in jax.tree.leaves(params))
    minus, zero, plus, flips = (jnp.sum(hit, dtype=jnp.int32) for hit in hits)
    return MaskCounts(minus, zero, plus, flips, jnp.asarray(infinite, jnp.int32))


def as_ratio(mean: float, samples: int) -> float:
    """Return the double nearest to hits / samples where a float32 mean is such a ratio; another mean as it is.

    In float32 97.58 % of 10,000 is 0.97579997...: which of two figures it rounds to would be chance.
    """
    hits = round(mean * samples) if math.isfinite(mean) else 0
    return hits / samples if math.isclose(hits / samples, mean, rel_tol=1e-7) else mean


def what_is_wrong(layers: Mapping[str, MaskCounts], seed: int, *, finite: bool) -> str:
    """Return why the seed in a place can't continue, from counts of shape [seeds]; an empty text if it can.

    `finite` says whether its loss and all that it trains are.
    """
    if not finite:
        where = ", ".join(name for name, layer in layers.items() if np.asarray(layer.infinite)[seed])
        return f"NaN or infinity among the scores of {where}" if where else "NaN or infinity in the loss"
    kept = {
        name: int(np.asarray(layer.minus)[seed]) + int(np.asarray(layer.plus)[seed]) for name, layer in layers.items()
    }
    empty = ", ".join(name for name, count in kept.items() if not count)
    return f"no weight is left in {empty}" if empty else ""


def dead_layers(masks: Mapping[str, Array]) -> list[str]:
    """Return the names of the layers whose masks are all 0: nothing gets through, and no score gets a gradient back."""
    return [name for name, mask in masks.items() if not np.any(np.asarray(mask))]


def shares(layers: Mapping[str, MaskCounts], seed: int) -> dict[str, float]:
    """Return one seed's shares (0 to 1) from counts of shape [seeds]: in all, and per layer as `LAYER:share`.

    Remaining weights are the share of masks that are not 0 (density).
    """
    counts = {name: [int(np.asarray(field)[seed]) for field in layer[:4]] for name, layer in layers.items()}
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
