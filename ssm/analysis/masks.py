"""What a layer's masks hold: shares of -1, 0 and +1, how much runs are alike, weights and inputs that no run uses.

`by_layer` takes a function of one layer to all layers of a net, and to all of them together.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Int8

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


class Equality(NamedTuple):
    """Shares of elements that are alike, each with its expected value for independent masks.

    same: alike in every run.  pairwise: alike in two runs, averaged over all pairs; NaN for a single run.
    """

    same: float
    chance: float
    pairwise: float
    pairwise_chance: float


def equality(mask: Int8[np.ndarray, "seeds ..."], *, absolute: bool = False) -> Equality:
    """Return how much R masks of one layer are alike; with `absolute`, of their absolute values (kept or hidden).

    With c_iv the number of runs in which element i has the value v, n elements, and p_rv the share of v in run r:

        same = #{i: max_v c_iv = R} / n                    chance = sum_v prod_r p_rv
        pairwise = mean_i sum_v c_iv (c_iv - 1) / R (R - 1)
        pairwise_chance = sum_v ((sum_r p_rv)^2 - sum_r p_rv^2) / R (R - 1)

    Chance is the expected value for masks that are independent and have no structure but their own shares.
    Source: figures conv_mask_eq and all_mask_eq of the paper, which print `same`.
    """
    flat = np.abs(mask.reshape(len(mask), -1)) if absolute else mask.reshape(len(mask), -1)
    runs, pairs = len(flat), len(flat) * (len(flat) - 1)
    alike = (flat == value for value in ((0, 1) if absolute else (-1, 0, 1)))
    found = [(one.sum(axis=0), one.mean(axis=1)) for one in alike]
    counts, shares = (np.stack(part) for part in zip(*found, strict=True))  # [values, n] and [values, runs]
    return Equality(
        same=float((counts.max(axis=0) == runs).mean()),
        chance=float(shares.prod(axis=1).sum()),
        pairwise=float((counts * (counts - 1)).sum(axis=0).mean() / pairs) if pairs else float("nan"),
        pairwise_chance=(
            float((shares.sum(axis=1) ** 2 - (shares**2).sum(axis=1)).sum() / pairs) if pairs else float("nan")
        ),
    )


def always_hidden(mask: Int8[np.ndarray, "seeds ..."]) -> float:
    """Return the share of one layer's weights that are hidden in every run, #{i: m_ri = 0 for all r} / n.

    Source: figure bin_mask_comparison of the paper: 54.11 % signed and 43.63 % binary, over 50 runs of the FCN.
    """
    return float((~mask.any(axis=0)).mean())


def input_sums(mask: Int8[np.ndarray, "seeds *window inputs outputs"]) -> Int[np.ndarray, " inputs"]:
    """Return for each input the number of its weights that remain, over all runs: s_j = sum_r,w,k |m_r,w,j,k|.

    w runs over a convolution's window, k over the outputs.  Inputs are the columns of the paper's figure
    bin_mask_comparison, which draws a layer's mask turned.
    """
    other = tuple(axis for axis in range(mask.ndim) if axis != mask.ndim - 2)
    return np.count_nonzero(mask, axis=other)


def hidden_inputs(mask: Int8[np.ndarray, "seeds *window inputs outputs"], *, most: int = 0) -> int:
    """Return the number of inputs of which at most `most` weights remain over all runs, #{j: s_j <= most}.

    s_j is that of `input_sums`; with 0, the inputs that are hidden in every run.
    Source: figure bin_mask_comparison of the paper, 50 runs of the FCN: 284 signed and 144 binary, and with at most
    100, 364 and 260.
    """
    return int((input_sums(mask) <= most).sum())
