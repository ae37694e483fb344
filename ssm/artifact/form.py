"""Between an artefact and its bytes: what its header says, and that all of it fits together."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ssm.artifact.artifact import Artifact, Layer
from ssm.artifact.coding import Counts, count, decode, encode
from ssm.artifact.container import Parts, pack, unpack
from ssm.errors import UserError
from ssm.graph import Architecture, graph, kernel_shapes, value_shapes

if TYPE_CHECKING:
    from flax import linen as nn

MOST_WEIGHTS = 1 << 28
PREPROCESSING = "per_image_standardization"


def to_bytes(artifact: Artifact) -> bytes:
    """Return the bytes of an artefact's file."""
    layers = []
    for name, layer in artifact.layers.items():
        counts = count(layer.ternary)
        layers.append([name, list(layer.ternary.shape), counts.minus, counts.plus, layer.constant])
    header = {
        "architecture": asdict(artifact.architecture) if artifact.architecture else None,
        "precision": artifact.precision,
        "preprocessing": PREPROCESSING,
        "class_names": list(artifact.class_names),
        "about": dict(artifact.about),
        "recipe": artifact.recipe,
        "layers": layers,
        "values": [[name, list(value.shape)] for name, value in artifact.values.items()],
    }
    flat = [np.asarray(value, np.float32).reshape(-1) for value in artifact.values.values()]
    values = np.concatenate(flat) if flat else np.zeros(0, np.float32)
    return pack(Parts(header, values, encode([layer.ternary for layer in artifact.layers.values()])))


def from_bytes(data: bytes, *, module: "nn.Module | None" = None, most_weights: int = MOST_WEIGHTS) -> Artifact:
    """Return the artefact of a file's bytes.

    Raises:
        UserError: see `ssm.artifact.load`.
    """
    header, floats, words = unpack(data)
    try:
        architecture = _architecture(header["architecture"])
        kinds = {"class_names": list, "about": dict, "layers": list, "values": list, "precision": str}
        if wrong := [name for name, kind in kinds.items() if not isinstance(header[name], kind)]:
            raise UserError(f"its header is damaged: {', '.join(wrong)}")
        layers = {
            str(name): (_shape(shape), minus, plus, constant) for name, shape, minus, plus, constant in header["layers"]
        }
        values = {str(name): _shape(shape) for name, shape in header["values"]}
        recipe, class_names = header["recipe"], tuple(header["class_names"])
        known = header["preprocessing"] == PREPROCESSING and header["precision"] in ("float32", "bfloat16")
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"its header is damaged: {error!r}") from error
    if not known:
        raise UserError(f"preprocessing {header['preprocessing']!r}, precision {header['precision']!r}: not known here")
    if len(layers) != len(header["layers"]) or len(values) != len(header["values"]):
        raise UserError("its header is damaged: a name is there twice")
    sizes = {name: math.prod(shape) for name, (shape, *_) in layers.items()}
    if (weights := sum(sizes.values())) > most_weights:
        raise UserError(f"it has {weights:,} weights; at most {most_weights:,} are read (most_weights)")
    if architecture is not None:
        _check_shapes(
            "layers",
            {name: shape for name, (shape, *_) in layers.items()},
            kernel_shapes(graph(architecture), architecture.inputs),
        )
        _check_shapes("values", values, value_shapes(architecture))
        if len(class_names) not in (0, architecture.classes):
            raise UserError(f"{len(class_names)} class names for {architecture.classes} classes")
    if not all(isinstance(name, str) for name in class_names):
        raise UserError("its header is damaged: class_names")
    _check_recipe(recipe, {name: constant for name, (_, _, _, constant) in layers.items()})
    counts = [_counts(minus, plus, sizes[name]) for name, (_, minus, plus, _) in layers.items()]
    decoded = [layer.reshape(shape) for layer, (shape, *_) in zip(decode(words, counts), layers.values(), strict=True)]
    if sum(math.prod(shape) for shape in values.values()) != floats.size:
        raise UserError(f"it holds {floats.size:,} values, and its header names others")
    ends = np.cumsum([math.prod(shape) for shape in values.values()])[:-1]
    parts = np.split(floats, ends) if values else []
    return Artifact(
        layers={
            name: Layer(ternary, constant)
            for ternary, (name, (_, _, _, constant)) in zip(decoded, layers.items(), strict=True)
        },
        values={name: part.reshape(shape) for part, (name, shape) in zip(parts, values.items(), strict=True)},
        architecture=architecture,
        precision=header["precision"],
        class_names=class_names,
        about=header["about"],
        recipe=recipe,
        given=module,
    )


def _architecture(fields: Any) -> Architecture | None:
    return None if fields is None else Architecture(**{**fields, "inputs": _shape(fields["inputs"])})


def _shape(sizes: Any) -> tuple[int, ...]:
    if not (
        isinstance(sizes, list) and len(sizes) <= 8 and all(type(size) is int and 0 <= size < 2**31 for size in sizes)
    ):
        raise ValueError(f"{str(sizes)[:40]} is no shape")
    return tuple(sizes)


def _counts(minus: Any, plus: Any, size: int) -> Counts:
    if type(minus) is not int or type(plus) is not int or not 0 <= minus <= size or not 0 <= plus <= size - minus:
        raise UserError(f"its header is damaged: {minus!r} and {plus!r} of {size} elements")
    return Counts(minus, plus, size)


def _check_shapes(what: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    if dict(found) != dict(wanted):
        other = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
        raise UserError(f"its {what} are not those of its architecture: {', '.join(other[:4])}")


def _check_recipe(recipe: Any, constants: Mapping[str, Any]) -> None:
    drawn = {name for name, constant in constants.items() if constant is None}
    for constant in constants.values():
        number = isinstance(constant, float | int) and type(constant) is not bool and abs(constant) < 1e30
        if constant is not None and not (number and float(np.float32(constant)) == constant):
            raise UserError(f"its header is damaged: {constant!r} is no layer's constant")
    if recipe is None and not drawn:
        return
    if not (isinstance(recipe, dict) and isinstance(recipe.get("hashes"), dict) and type(recipe.get("seed")) is int):
        raise UserError("it does not say how its frozen weights come again")
    if not isinstance(recipe.get("config"), dict) or set(recipe["hashes"]) != drawn:
        raise UserError("it does not say how its frozen weights come again")
