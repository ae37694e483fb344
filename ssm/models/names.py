"""The paper's networks by name."""

from collections.abc import Callable
from functools import partial

from flax import linen as nn

from ssm.models.feedforward import FCN, ConvNet
from ssm.models.graph import PAIRS
from ssm.models.resnet import ResNet
from ssm.recipes.presets import BLOCKS

RESNETS = tuple(BLOCKS)
"""The models with batch normalisation, which alone take its options and `projections`."""

MODELS: dict[str, Callable[..., nn.Module]] = {
    "fcn": FCN,
    **{name: partial(ConvNet, pairs=pairs) for name, pairs in PAIRS.items()},
    **{name: partial(ResNet, blocks=blocks) for name, blocks in BLOCKS.items()},
}
