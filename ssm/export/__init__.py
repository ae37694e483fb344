"""Trained nets as small files: `export.py` writes one, `ssm.load` reads it, docs/format.md specifies the bytes."""

from typing import TYPE_CHECKING

from ssm.export.artifact import Artifact
from ssm.export.contents import Layer
from ssm.export.loading import load
from ssm.lazy import attributes

if TYPE_CHECKING:
    from ssm.export.conversion import from_run as from_run
    from ssm.export.conversion import from_supermask as from_supermask

__all__ = ["Artifact", "Layer", "from_run", "from_supermask", "load"]

# They need JAX, which loading a net does not.
__getattr__ = attributes(__name__, dict.fromkeys(("from_run", "from_supermask"), "ssm.export.conversion"))
