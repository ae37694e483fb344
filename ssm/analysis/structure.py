"""Which inputs and outputs a mask uses much and which little: whether two masks agree in it, and whether it matters.

The paper shows it by eye (figure conv_mask_comparison): rows and columns that are dense or empty in both of two runs.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int, Int8

from ssm.analysis.masks import ALL

_TIE = 1e-12
"""Orders of summation differ by less: such a permutation gives as much as the masks themselves."""


class Profiles(NamedTuple):
    """The density of each input's row and of each output's column."""

    rows: Float[np.ndarray, " inputs"]
    columns: Float[np.ndarray, " outputs"]


class PermutationTest(NamedTuple):
    """The similarity of two masks, and the share of permutations that give at least as much."""

    similarity: float
    p: float


def profiles(mask: Int8[np.ndarray, "*window inputs outputs"]) -> Profiles:
    """Return the densities of one layer of one seed: r_j = mean_w,k |m_w,j,k| and c_k = mean_w,j |m_w,j,k|.

    w runs over a convolution's window.
    """
    used = (mask != 0).reshape(-1, *mask.shape[-2:])
    return Profiles(rows=used.mean(axis=(0, 2)), columns=used.mean(axis=(0, 1)))


def with_hidden(
    weights: Float32[np.ndarray, "..."], mask: Int8[np.ndarray, "..."], *, seed: int = 0
) -> Float32[np.ndarray, "..."]:
    """Return the weights under a mask with those that it hides, where they are 0, drawn from the ones that it keeps.

    So a shuffled mask meets weights of the same distribution, of a net whose hidden weights are not known.
    """
    unknown, kept = (mask == 0) & (weights == 0), weights[mask != 0]
    filled = weights.copy()
    if kept.size:
        filled[unknown] = np.random.default_rng(seed).choice(kept, np.count_nonzero(unknown))
    return filled


def similarity(a: Int8[np.ndarray, "*window inputs outputs"], b: Int8[np.ndarray, "*window inputs outputs"]) -> float:
    """Return how alike two masks' profiles are: (corr(r_a, r_b) + corr(c_a, c_b)) / 2, in [-1, 1].

    corr is Pearson's; that of a profile which is the same throughout counts as 0, as it has no structure.

    Raises:
        ValueError: for masks of other numbers of inputs or outputs.
    """
    return float(np.mean([x @ y for x, y in _standard(a, b)]))


def permutation_test(
    a: Int8[np.ndarray, "*window inputs outputs"],
    b: Int8[np.ndarray, "*window inputs outputs"],
    *,
    permutations: int = 999,
    seed: int = 0,
) -> PermutationTest:
    """Return the similarity s of two masks, and how likely it is when inputs and outputs have no identity.

    p = (1 + #{t: s_t >= s}) / (1 + permutations), where s_t is the similarity to b of a with its rows and its columns
    shuffled: all the structure of a is left, but not where it is.  The least p is 1 / (1 + permutations).

    Raises:
        ValueError: see `similarity`.
    """
    pairs = _standard(a, b)
    rng = np.random.default_rng(seed)
    found = float(np.mean([x @ y for x, y in pairs]))
    # A shuffled mask's profiles are the mask's own, shuffled.
    others = [np.mean([rng.permutation(x) @ y for x, y in pairs]) for _ in range(permutations)]
    return PermutationTest(found, (1 + int(np.sum(np.asarray(others) >= found - _TIE))) / (1 + permutations))


def _standard(a: np.ndarray, b: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return both masks' rows and columns with mean 0 and length 1, whose scalar product is their correlation."""
    if a.shape[-2:] != b.shape[-2:]:
        raise ValueError(f"masks of two shapes, {a.shape} and {b.shape}")
    return [(_unit(x), _unit(y)) for x, y in zip(profiles(a), profiles(b), strict=True)]


def _unit(profile: np.ndarray) -> np.ndarray:
    if np.ptp(profile) == 0:
        return np.zeros_like(profile)
    centred = profile - profile.mean()
    return centred / np.linalg.norm(centred)


def shuffled(mask: Int8[np.ndarray, "..."], rng: np.random.Generator) -> Int8[np.ndarray, "..."]:
    """Return one layer's mask with its elements at random places, every order as likely as any other.

    Shape, density and the shares of the signs stay; rows and columns lose their identity.  `mask` is not changed.
    """
    return rng.permutation(mask.reshape(-1)).reshape(mask.shape)


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
