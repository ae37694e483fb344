"""An artefact's contents as the bytes of its file, and back."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from ssm.errors import UserError
from ssm.export.block import Block, BlockForm, block_of, joined
from ssm.export.coding import count, decode, encode
from ssm.export.container import Parts, pack, unpack
from ssm.export.contents import Contents, Layer
from ssm.export.header import OWN, PREPROCESSING, Header, checked
from ssm.files import plain

MOST_WEIGHTS = 1 << 28
"""Of a net that is read, unless the caller says otherwise: one byte each in memory."""


def to_bytes(contents: Contents) -> bytes:
    """Return the bytes of an artefact's file, which `from_bytes` reads.

    Raises:
        UserError: for contents that contradict each other, or that the format cannot represent.
    """
    try:
        blocks = {name: block_of(layer.ternary) for name, layer in contents.layers.items()}
        header = plain(_header(contents, blocks))
        version = checked(header).version
        if other := [name for name, value in contents.values.items() if value.dtype != np.float32]:
            raise UserError(f"{', '.join(other)}: not float32")
        flat = [value.reshape(-1) for value in contents.values.values()]
        flat += [_own(name, layer) for name, layer in contents.layers.items() if layer.own is not None]
        values = np.concatenate(flat) if flat else np.zeros(0, np.float32)
        coded = []
        for name, layer in contents.layers.items():
            coded += [layer.ternary] if (block := blocks[name]) is None else block.parts()
        return pack(Parts(header, values, encode(coded), version))
    except (UserError, TypeError, ValueError) as error:
        raise UserError(f"this net cannot be saved: {error}") from error


def _header(contents: Contents, blocks: Mapping[str, Block | None]) -> dict[str, Any]:
    counts = {name: count(layer.ternary) for name, layer in contents.layers.items()}
    forms = {name: [] if block is None else _written(block.form) for name, block in blocks.items()}
    return {
        "architecture": dataclasses.asdict(contents.architecture) if contents.architecture else None,
        "precision": contents.precision,
        "preprocessing": PREPROCESSING,
        "class_names": list(contents.class_names),
        "about": dict(contents.about),
        "recipe": contents.recipe,
        "layers": [
            [name, list(layer.ternary.shape), counts[name].minus, counts[name].plus, _constant(layer), *forms[name]]
            for name, layer in contents.layers.items()
        ],
        "values": [[name, list(value.shape)] for name, value in contents.values.items()],
    }


def _written(form: BlockForm) -> list[Any]:
    """Return what a layer's entry says of its block: numbers of rows and columns, or of both classes, and counts."""
    if len(form.parts) == 1:
        return [form.rows[0], form.columns[0]]
    return [list(form.rows), list(form.columns), [[minus, plus] for minus, plus, _ in form.parts]]


def _ternary(header: Header, words: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the layers' ternary arrays, in the header's order."""
    forms = header.layers.values()
    counts = [[form.counts] if form.block is None else form.block.counts(form.shape) for form in forms]
    flat = decode(words, [one for own in counts for one in own])
    for form, own in zip(forms, counts, strict=True):
        parts = list(islice(flat, len(own)))
        yield parts[0].reshape(form.shape) if form.block is None else joined(parts, form.shape)
    next(flat, None)  # whose end says whether words are left


def _constant(layer: Layer) -> Any:
    return OWN if layer.own is not None else list(layer.constant) if type(layer.constant) is tuple else layer.constant


def _own(name: str, layer: Layer) -> np.ndarray:
    """Return the values of a layer that has its own."""
    own, kept = layer.own, np.count_nonzero(layer.ternary)
    if layer.constant is not None or own is None or own.dtype != np.float32 or own.shape != (kept,) or not own.all():
        raise UserError(f"the {kept:,} values of {name} must be float32, none of them 0, and without a constant")
    return own


def from_bytes(data: bytes, *, most_weights: int = MOST_WEIGHTS) -> Contents:
    """Return the contents of a file's bytes; beyond `data` this takes the memory of the values, and a byte per weight.

    Raises:
        UserError: see `ssm.load`.
    """
    parts = unpack(data)
    header = checked(parts.header)
    if header.weights > most_weights:
        raise UserError(f"it has {header.weights:,} weights; at most {most_weights:,} are read (most_weights)")
    if header.version != parts.version:
        raise UserError(f"its header is damaged: one of version {header.version} in a file of version {parts.version}")
    sizes = [math.prod(shape) for shape in header.values.values()]
    sizes += [form.own for form in header.layers.values() if form.own is not None]
    if sum(sizes) != parts.values.size:
        raise UserError(f"it holds {parts.values.size:,} values, and its header names {sum(sizes):,}")
    # Split at all ends, what is left after the last being nothing.
    arrays = iter(np.split(parts.values, np.cumsum(sizes, dtype=np.int64))[:-1] if sizes else [])
    values = {name: next(arrays).reshape(shape) for name, shape in header.values.items()}
    layers = {
        name: Layer(ternary, form.constant, None if form.own is None else next(arrays))
        for ternary, (name, form) in zip(_ternary(header, parts.words), header.layers.items(), strict=True)
    }
    if header.architecture and any((array < 0).any() for name, array in values.items() if name.endswith("/var")):
        raise UserError("it holds variances below 0")
    if any(layer.own is not None and not layer.own.all() for layer in layers.values()):
        raise UserError("a value of its own in a layer is 0")
    return Contents(
        layers=layers,
        values=values,
        architecture=header.architecture,
        precision=header.precision,
        class_names=header.class_names,
        about=header.about,
        recipe=header.recipe,
    )
