"""Artefacts read from files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ssm.errors import UserError
from ssm.export import serialization
from ssm.export.artifact import Artifact
from ssm.export.container import read

if TYPE_CHECKING:
    from flax import linen as nn


def load(path: str | os.PathLike[str], *, module: nn.Module | None = None, most_weights: int | None = None) -> Artifact:
    """Read an artefact; no code in it is run, and no length in it is trusted.

    module: the net, where it is the user's own (`Artifact.architecture` None).
    most_weights: larger nets are refused (default 2**28, one byte each in memory).

    Raises:
        UserError: naming the file, if it is missing, damaged, too large, or not what it says it is.
    """
    try:
        if Path(path).exists() and not Path(path).is_file():  # a device or a pipe may have no end
            raise OSError(errno.EINVAL, "it is no file")
        return load_bytes(read(path), module=module, most_weights=most_weights)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def load_bytes(data: bytes, *, module: nn.Module | None = None, most_weights: int | None = None) -> Artifact:
    """Return the artefact of a file's bytes, as `load` does.

    Raises:
        UserError: see `load`.
    """
    most = serialization.MOST_WEIGHTS if most_weights is None else most_weights
    return Artifact(**vars(serialization.from_bytes(data, most_weights=most)), given=module)
