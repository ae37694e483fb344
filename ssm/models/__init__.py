"""The paper's networks as plain Flax modules; nothing here knows of masks.

All are called as `net(x, *, train=False, valid=None)` and have the fields of `Net`.  Names are imported when they are
first used: `ssm.models.graph`, which describes the nets without JAX, must not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssm.models.feedforward import FCN as FCN
    from ssm.models.feedforward import ConvNet as ConvNet
    from ssm.models.names import MODELS as MODELS
    from ssm.models.names import RESNETS as RESNETS
    from ssm.models.resnet import ResNet as ResNet
    from ssm.ops.pooling import elu as elu
    from ssm.ops.pooling import max_pool as max_pool
    from ssm.ops.pooling import smooth_pool as smooth_pool
    from ssm.trees import count_weights as count_weights

_HOMES = {
    "FCN": "ssm.models.feedforward",
    "ConvNet": "ssm.models.feedforward",
    "MODELS": "ssm.models.names",
    "RESNETS": "ssm.models.names",
    "ResNet": "ssm.models.resnet",
    "count_weights": "ssm.trees",
    "elu": "ssm.ops.pooling",
    "max_pool": "ssm.ops.pooling",
    "smooth_pool": "ssm.ops.pooling",
}
__all__ = ["FCN", "MODELS", "RESNETS", "ConvNet", "ResNet", "count_weights", "elu", "max_pool", "smooth_pool"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ssm.models' has no attribute {name!r}")
