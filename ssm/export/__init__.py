"""Trained nets as small files: `export.py` writes one, `ssm.load` reads it, docs/format.md specifies the bytes."""

from typing import TYPE_CHECKING, Any

from ssm.export.artifact import Artifact
from ssm.export.contents import Layer
from ssm.export.loading import load

if TYPE_CHECKING:
    from ssm.export.conversion import from_run as from_run
    from ssm.export.conversion import from_supermask as from_supermask

__all__ = ["Artifact", "Layer", "from_run", "from_supermask", "load"]


def __getattr__(name: str) -> Any:
    if name in ("from_run", "from_supermask"):  # they need JAX, which loading a net does not
        from ssm.export import conversion

        return getattr(conversion, name)
    raise AttributeError(f"module 'ssm.export' has no attribute {name!r}")
