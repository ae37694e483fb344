"""The paper's networks as plain Flax modules; nothing here knows of masks.

All are called as `net(x, *, train=False, present=None)` and have the fields of `Net`.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from flax import linen as nn

from ssm.graph import PAIRS
from ssm.models.feedforward import FCN, ConvNet
from ssm.models.functions import elu, max_pool, smooth_pool
from ssm.models.resnet import ResNet
from ssm.presets import BLOCKS

__all__ = ["FCN", "MODELS", "RESNETS", "ConvNet", "ResNet", "count_weights", "elu", "max_pool", "smooth_pool"]


def count_weights(tree: Any) -> int:
    """Return the number of elements in all leaves of a tree of arrays (or of shapes from `jax.eval_shape`)."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


RESNETS = tuple(BLOCKS)
"""The models with batch normalisation, which alone take its options and `projections`."""

MODELS: dict[str, Callable[..., nn.Module]] = {
    "fcn": FCN,
    **{name: partial(ConvNet, pairs=pairs) for name, pairs in PAIRS.items()},
    **{name: partial(ResNet, blocks=blocks) for name, blocks in BLOCKS.items()},
}
