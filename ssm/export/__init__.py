"""Trained nets as small files: `export.py` makes one, `ssm.load` reads it; docs/format.md says what the bytes are."""

from ssm.export.artifact import Artifact
from ssm.export.contents import Layer
from ssm.export.loading import load

__all__ = ["Artifact", "Layer", "load"]
