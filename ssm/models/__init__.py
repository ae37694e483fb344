"""The paper's networks and the related work's as plain Flax modules, without masks.

All are called as `net(x, *, train=False, valid=None)` and have the fields of `Net`.  Names are imported when they are
first used: `ssm.models.description` and `ssm.models.graph`, which describe the nets without JAX, don't load it.
"""

from typing import TYPE_CHECKING

from ssm.lazy import attributes

if TYPE_CHECKING:
    from ssm.models.description import RESNETS as RESNETS
    from ssm.models.literature import LITERATURE as LITERATURE
    from ssm.models.networks import FCN as FCN
    from ssm.models.networks import MODELS as MODELS
    from ssm.models.networks import ConvNet as ConvNet
    from ssm.models.networks import ResNet as ResNet
    from ssm.models.resnet18 import ResNet18 as ResNet18
    from ssm.models.vgg import VGG as VGG
    from ssm.models.wide_resnet import WideResNet as WideResNet
    from ssm.ops.activations import elu as elu
    from ssm.ops.pooling import max_pool as max_pool
    from ssm.ops.pooling import smooth_pool as smooth_pool
    from ssm.trees import count_weights as count_weights

_HOMES = {
    "FCN": "ssm.models.networks",
    "ConvNet": "ssm.models.networks",
    "LITERATURE": "ssm.models.literature",
    "MODELS": "ssm.models.networks",
    "RESNETS": "ssm.models.description",
    "ResNet": "ssm.models.networks",
    "ResNet18": "ssm.models.resnet18",
    "VGG": "ssm.models.vgg",
    "WideResNet": "ssm.models.wide_resnet",
    "count_weights": "ssm.trees",
    "elu": "ssm.ops.activations",
    "max_pool": "ssm.ops.pooling",
    "smooth_pool": "ssm.ops.pooling",
}
__all__ = [
    "FCN",
    "LITERATURE",
    "MODELS",
    "RESNETS",
    "VGG",
    "ConvNet",
    "ResNet",
    "ResNet18",
    "WideResNet",
    "count_weights",
    "elu",
    "max_pool",
    "smooth_pool",
]

__getattr__ = attributes(__name__, _HOMES)
