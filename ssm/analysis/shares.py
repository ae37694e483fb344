"""Shares of -1, 0 and +1, and what became of the initial mask's elements."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int8

from ssm.analysis.layers import Masks, by_layer

PerSeed = Float[np.ndarray, " seeds"]


class Shares(NamedTuple):
    """Shares of a layer's elements that are -1, 0 and +1, by seed; the three sum to 1."""

    minus: PerSeed
    zero: PerSeed
    plus: PerSeed

    @property
    def remaining(self) -> PerSeed:
        """The density, minus + plus: the share of weights that remain."""
        return self.minus + self.plus


class Moves(NamedTuple):
    """Shares of a layer's elements by what became of them, by seed; the five sum to 1.

    kept: not 0 before, and the same after.  hidden: 0 after.  inverted: the other sign after.
    revived: 0 before, not 0 after.  left_hidden: 0 before and after.
    """

    kept: PerSeed
    hidden: PerSeed
    inverted: PerSeed
    revived: PerSeed
    left_hidden: PerSeed


def _share(holds: Bool[np.ndarray, "seeds ..."]) -> PerSeed:
    return holds.reshape(len(holds), -1).mean(axis=1, dtype=np.float64)


def _shares(mask: Int8[np.ndarray, "seeds ..."]) -> Shares:
    return Shares(_share(mask == -1), _share(mask == 0), _share(mask == 1))


def shares(masks: Masks) -> dict[str, Shares]:
    """Return by layer the share of elements of each value v, #{i: m_i = v} / n, and under "all" that of the whole net.

    Source: figures conv_mask_dist, all_mask_dist and rn_mask_dist of the paper, which average over the seeds.
    """
    return by_layer(_shares, masks)


def moves(initial: Int8[np.ndarray, "seeds ..."], final: Int8[np.ndarray, "seeds ..."]) -> Moves:
    """Return what became of one layer's initial mask: #{i: a_i and b_i as the field says} / n, by seed.

    For all layers: `by_layer(moves, initial, final)`.

    Raises:
        ValueError: for masks of two shapes.
    """
    if initial.shape != final.shape:
        raise ValueError(f"masks of two shapes, {initial.shape} and {final.shape}")
    product = initial * final  # 1: the same sign; -1: the other
    was, is_ = initial != 0, final != 0
    return Moves(
        kept=_share(product == 1),
        hidden=_share(was & ~is_),
        inverted=_share(product == -1),
        revived=_share(~was & is_),
        left_hidden=_share(~was & ~is_),
    )


def flip_rate(masks: Int8[np.ndarray, "epochs ..."]) -> Float[np.ndarray, " epochs-1"]:
    """Return for each epoch but the first the share of elements that differ from the epoch before.

    f_t = #{i: m_t,i != m_t-1,i} / n, of one layer's masks at several moments; as the column `flips` of a run's history.
    """
    return _share(masks[1:] != masks[:-1]) if len(masks) > 1 else np.zeros(0)
