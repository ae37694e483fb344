"""Signed Supermasks: nets whose frozen random weights are kept, hidden or inverted, in JAX and Flax.

`Supermask` masks any Flax module, `ternarize` is the mask itself, and `ssm.initializers`, `ssm.thresholds` and
`ssm.optim` hold the paper's choices.  Names are imported when they are first used, so that the parts that need no
JAX (results, tables) start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssm.errors import UserError as UserError
    from ssm.export.loading import load as load
    from ssm.optim import sgdw as sgdw
    from ssm.supermask import Supermask as Supermask
    from ssm.ternary import binarize as binarize
    from ssm.ternary import ternarize as ternarize

_HOMES = {
    "Supermask": "ssm.supermask",
    "UserError": "ssm.errors",
    "binarize": "ssm.ternary",
    "load": "ssm.export",
    "sgdw": "ssm.optim",
    "ternarize": "ssm.ternary",
}
__all__ = ["Supermask", "UserError", "binarize", "load", "sgdw", "ternarize"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ssm' has no attribute {name!r}")
