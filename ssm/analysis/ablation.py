"""Whether it matters which weights a mask keeps, or only how many: accuracy once its elements are at random places."""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float, Float32, Int, Int8

from ssm.analysis.layers import ALL
from ssm.analysis.shuffle import shuffled

Net = Callable[[Float32[np.ndarray, "n h w c"]], Float32[np.ndarray, "n classes"]]
OneSeed = Mapping[str, Int8[np.ndarray, "..."]]
"""The masks of one seed by layer."""


def accuracy(net: Net, images: Float32[np.ndarray, "n h w c"], labels: Int[np.ndarray, " n"]) -> float:
    """Return the share of images whose largest logit is that of their label; of equal ones the first counts."""
    return float(np.mean(net(images).argmax(axis=1) == labels))


def shuffled_scores(
    masks: OneSeed, score: Callable[[OneSeed], float], *, shuffles: int, seed: int = 0
) -> dict[str, Float[np.ndarray, " shuffles"]]:
    """Return what `score` gives with one layer's mask shuffled, by layer, and with all of them, under "all".

    score: takes the masks of all layers, such as the accuracy of the net that they make of its frozen weights.
    shuffles: how often; each time, all layers are shuffled once, and every layer alone is as it is among all.
    Every layer keeps its density and its shares of the signs (`shuffled`).
    """
    rng = np.random.default_rng(seed)
    found: dict[str, list[float]] = {name: [] for name in (*masks, ALL)}
    for _ in range(shuffles):
        mixed = {layer: shuffled(mask, rng) for layer, mask in masks.items()}
        for layer in masks:
            found[layer].append(score({**masks, layer: mixed[layer]}))
        found[ALL].append(score(mixed))
    return {name: np.asarray(scores) for name, scores in found.items()}
