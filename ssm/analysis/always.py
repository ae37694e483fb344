"""Weights and inputs that no run makes use of."""

import numpy as np
from jaxtyping import Int, Int8


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
