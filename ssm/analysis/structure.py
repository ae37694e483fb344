"""Whether two masks have the same structure: which inputs and outputs are used much, and which little.

The paper shows it by eye (figure conv_mask_comparison): rows and columns that are dense or empty in both of two runs.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int8

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
