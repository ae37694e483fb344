"""From one layer to all layers of a net, and to all of them together."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Int8

ALL = "all"
"""The key of what holds for all layers together."""

Masks = Mapping[str, Int8[np.ndarray, "seeds ..."]]
"""The masks of many seeds by layer."""


def by_layer(function: Callable[..., Any], *masks: Masks, **options: Any) -> dict[str, Any]:
    """Return function(one layer's masks, ...) by layer, and under "all", which comes last, that of the whole net.

    `function` takes one layer of each of `masks`, and returns a number, an array, or a named tuple of these that are
    means over the layer's elements (shares, moves, equality): all = sum_l n_l f_l / sum_l n_l, n_l elements in layer l.

    Raises:
        ValueError: for no layers, or masks that differ in their layers.
    """
    first = masks[0]
    if not first or any(set(other) != set(first) for other in masks[1:]):
        raise ValueError("no layers, or not the same in all masks")
    found = {layer: function(*(one[layer] for one in masks), **options) for layer in first}
    weights = [mask.size / sum(mask.size for mask in first.values()) for mask in first.values()]
    return found | {ALL: _weighted(list(found.values()), weights)}


def _weighted(values: list[Any], weights: list[float]) -> Any:
    if isinstance(values[0], tuple):
        return type(values[0])(*(_weighted(list(field), weights) for field in zip(*values, strict=True)))
    return sum(weight * value for weight, value in zip(weights, values, strict=True))
