"""Between an artefact and its bytes."""

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ssm.errors import UserError
from ssm.export.artifact import Artifact, Layer
from ssm.export.coding import count, decode, encode
from ssm.export.container import Parts, pack, unpack
from ssm.export.header import PREPROCESSING, checked
from ssm.files import plain

if TYPE_CHECKING:
    from flax import linen as nn

MOST_WEIGHTS = 1 << 28


def to_bytes(artifact: Artifact) -> bytes:
    """Return the bytes of an artefact's file, which `from_bytes` will read.

    Raises:
        UserError: for an artefact that contradicts itself, or holds what the format has no form for.
    """
    try:
        header = plain(_header(artifact))
        checked(header)
        if other := [name for name, value in artifact.values.items() if value.dtype != np.float32]:
            raise UserError(f"{', '.join(other)}: not float32")
        flat = [value.reshape(-1) for value in artifact.values.values()]
        values = np.concatenate(flat) if flat else np.zeros(0, np.float32)
        return pack(Parts(header, values, encode([layer.ternary for layer in artifact.layers.values()])))
    except (UserError, TypeError, ValueError) as error:
        raise UserError(f"this net cannot be saved: {error}") from error


def _header(artifact: Artifact) -> dict[str, Any]:
    counts = {name: count(layer.ternary) for name, layer in artifact.layers.items()}
    return {
        "architecture": dataclasses.asdict(artifact.architecture) if artifact.architecture else None,
        "precision": artifact.precision,
        "preprocessing": PREPROCESSING,
        "class_names": list(artifact.class_names),
        "about": dict(artifact.about),
        "recipe": artifact.recipe,
        "layers": [
            [name, list(layer.ternary.shape), counts[name].minus, counts[name].plus, layer.constant]
            for name, layer in artifact.layers.items()
        ],
        "values": [[name, list(value.shape)] for name, value in artifact.values.items()],
    }


def from_bytes(data: bytes, *, module: "nn.Module | None" = None, most_weights: int = MOST_WEIGHTS) -> Artifact:
    """Return the artefact of a file's bytes; beside them it takes the memory of their values and a byte a weight.

    Raises:
        UserError: see `ssm.export.load`.
    """
    parts = unpack(data)
    header = checked(parts.header)
    if header.weights > most_weights:
        raise UserError(f"it has {header.weights:,} weights; at most {most_weights:,} are read (most_weights)")
    sizes = [math.prod(shape) for shape in header.values.values()]
    if sum(sizes) != parts.values.size:
        raise UserError(f"it holds {parts.values.size:,} values, and its header names {sum(sizes):,}")
    layers = {
        name: Layer(flat.reshape(form.shape), form.constant)
        for flat, (name, form) in zip(
            decode(parts.words, [form.counts for form in header.layers.values()]), header.layers.items(), strict=True
        )
    }
    # Split at all ends, what is left after the last being nothing.
    arrays = np.split(parts.values, np.cumsum(sizes, dtype=np.int64))[:-1] if sizes else []
    values = {name: array.reshape(shape) for array, (name, shape) in zip(arrays, header.values.items(), strict=True)}
    if header.architecture and any((array < 0).any() for name, array in values.items() if name.endswith("/var")):
        raise UserError("it holds variances below 0")
    return Artifact(
        layers=layers,
        values=values,
        architecture=header.architecture,
        precision=header.precision,
        class_names=header.class_names,
        about=header.about,
        recipe=header.recipe,
        given=module,
    )
