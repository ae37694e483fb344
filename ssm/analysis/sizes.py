"""How many bytes a mask takes, and the paper's compression rate."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Int8


class Sizes(NamedTuple):
    """Bytes of one layer, or of several together.

    dense: float32.  csr: the paper's metric, `scipy.sparse` rows of float32 with int32 indices.
    two_bit: four elements a byte.  entropy: of order 0, what a code of single
    elements takes that knows their shares; one that knows which rows and columns are 0 takes less.
    """

    dense: int
    csr: int
    two_bit: int
    entropy: float


def sizes(mask: Int8[np.ndarray, "*window inputs outputs"]) -> Sizes:
    """Return the bytes of one layer of one seed.

    With n elements, z of them not 0, and p_v the share of the value v:

        dense = 4 n                 csr = 8 z + 4 (rows + 1)
        two_bit = ceil(n / 4)       entropy = n / 8 sum_v p_v log2(1 / p_v)

    csr is what SciPy makes of the mask: a matrix as it is, a row per input, and a convolution reshaped to
    [height * width, inputs * outputs].  The paper says "reshaped to two dimensions" and not how; so reshaped, its
    ten compression rates follow from its remaining weights, to the last digit that these have.
    """
    from scipy.sparse import csr_array  # half a second, which most callers need not wait for

    matrix = mask if mask.ndim == 2 else mask.reshape(math.prod(mask.shape[:-2]), -1)
    rows = csr_array(matrix.astype(np.float32))
    counts = np.unique_counts(mask).counts
    return Sizes(
        dense=4 * mask.size,
        csr=rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes,
        two_bit=-(-mask.size // 4),
        entropy=float((counts * np.log2(mask.size / counts)).sum()) / 8,
    )


def total(parts: Iterable[Sizes]) -> Sizes:
    """Return the sum of the sizes of several layers, field by field."""
    return Sizes(*(sum(field) for field in zip(Sizes(0, 0, 0, 0.0), *parts, strict=True)))


def compression(masks: Mapping[str, Int8[np.ndarray, "..."]]) -> float:
    """Return the share of memory that csr saves in one seed's net: 1 - csr / dense, over all its layers.

    Source: the paper's compression rate (tables conv_eff and rn_eff; 92.01 % for the FCN), averaged over the seeds.
    """
    whole = total(map(sizes, masks.values()))
    return 1 - whole.csr / whole.dense
