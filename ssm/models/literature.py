"""The networks of the related work's results that the paper prints, by name; the paper's own are in `MODELS`."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from ssm.models.networks import Net
from ssm.models.resnet18 import ResNet18
from ssm.models.vgg import VGG, VGG19
from ssm.models.wide_resnet import WideResNet

LITERATURE: Mapping[str, Callable[..., Net]] = MappingProxyType(
    {
        "vgg_small": VGG,
        "vgg_small_1024": partial(VGG, hidden=(1024,)),
        "vgg_small_1024x2": partial(VGG, hidden=(1024, 1024), norm_after_pool=True, norm_output=True),
        "vgg19": partial(VGG, stages=VGG19, mean=True),
        "resnet18": ResNet18,
        "wrn22_2": WideResNet,
    }
)
"""The related work's networks by name, with ReLU and batch normalisation.

IteRand's "Conv6 x2", the only other one, is `MODELS["conv6"](width=2)`.  Apart from `MODELS`, because of all recipes
only the published ones know these nets, and no graph of operations does.
"""
