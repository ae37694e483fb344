"""Trained nets as small files: `export.py` writes one, `ssm.load` reads it, docs/format.md specifies the bytes."""

from ssm.export.artifact import Artifact
from ssm.export.contents import Layer
from ssm.export.loading import load

__all__ = ["Artifact", "Layer", "load"]
