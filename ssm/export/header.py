"""The checked header of an artefact: one pass from arbitrary JSON to consistent values."""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from reprlib import repr as short
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ssm.errors import UserError
from ssm.export.block import BlockForm, matrix_shape
from ssm.export.coding import Counts
from ssm.export.contents import kernel_path
from ssm.models.description import BLOCKS
from ssm.models.graph import Architecture, Shape, architecture, graph, kernel_shapes, value_shapes
from ssm.paths import name_path

PREPROCESSING = "per_image_standardization"
PRECISIONS = ("float32", "bfloat16")
FIELDS = ("architecture", "precision", "preprocessing", "class_names", "about", "recipe", "layers", "values")
MOST_AXES = 8
MOST_ELEMENTS = 1 << 40  # of any shape, an axis of 0 counted as 1: NumPy refuses some larger ones
MOST_PARTS = 32  # of a name, between slashes
MOST_CONSTANT = 1e30
OWN = "own"  # in place of a layer's constant: its values follow those that the header names

T = TypeVar("T")


class LayerForm(NamedTuple):
    """A layer without its elements: shape, counts and constants, and how many values are its own, if they are.

    block: the form of its block (`ssm.export.block`); None if it is coded as it is.
    """

    shape: Shape
    counts: Counts
    constant: float | tuple[float, float] | None
    own: int | None
    block: BlockForm | None = None


class Header(NamedTuple):
    """The fields of `Contents`, with shapes in place of arrays; all of it checked."""

    architecture: Architecture | None
    precision: str
    class_names: tuple[str, ...]
    about: dict[str, Any]
    recipe: dict[str, Any] | None
    layers: dict[str, LayerForm]
    values: dict[str, Shape]

    @property
    def weights(self) -> int:
        """The number of weights in all layers."""
        return sum(layer.counts.size for layer in self.layers.values())

    @property
    def version(self) -> int:
        """The version of the format that these layers need.

        1 if each has one constant, or weights drawn again; 2 if one has two constants, or its own values; 3 if one is
        coded as a block, 4 if one is as a block of four parts.
        """
        if blocks := [one.block for one in self.layers.values() if one.block is not None]:
            return 4 if any(len(block.parts) > 1 for block in blocks) else 3
        return 2 if any(isinstance(one.constant, tuple) or one.own is not None for one in self.layers.values()) else 1


def checked(header: Mapping[str, Any]) -> Header:
    """Return a header's checked fields, from the tree of plain JSON values that `ssm.export.container` reads or writes.

    Raises:
        UserError: for a wrong type, a missing or unknown field, and values that contradict each other.
    """
    if strange := sorted(set(header) ^ set(FIELDS)):
        raise _damaged("a field is missing or unknown", strange)
    if header["preprocessing"] != PREPROCESSING or header["precision"] not in PRECISIONS:
        raise _damaged("preprocessing and precision", [header["preprocessing"], header["precision"]])
    net = _architecture(header["architecture"])
    layers = _by_name("layer", map(_layer, _each("layers", header["layers"], 5, 7, 8)))
    values = _by_name("value", map(_value, _each("values", header["values"], 2)))
    _check_paths(layers, values)
    if net is not None:
        _check_shapes("layers", {name: layer.shape for name, layer in layers.items()}, _kernel_shapes(net))
        _check_shapes("values", values, value_shapes(net))
    return Header(
        architecture=net,
        precision=header["precision"],
        class_names=_class_names(header["class_names"], net),
        about=_about(header["about"]),
        recipe=_recipe(
            header["recipe"], net, {name for name, one in layers.items() if one.constant is None and one.own is None}
        ),
        layers=layers,
        values=values,
    )


def _damaged(what: str, value: Any) -> UserError:
    return UserError(f"its header is damaged: {what}: {short(value)}")


def _typed(what: str, value: Any, kind: type[T]) -> T:
    """Return a value that is exactly of one of JSON's types: a bool is not an int."""
    if type(value) is not kind:
        raise _damaged(what, value)
    return value


def _whole(what: str, value: Any, least: int, most: int) -> int:
    if not least <= _typed(what, value, int) <= most:
        raise _damaged(what, value)
    return value


def _each(what: str, value: Any, *lengths: int) -> list[list[Any]]:
    """Return a list of lists of one length, or one of several."""
    for entry in _typed(what, value, list):
        if len(_typed(what, entry, list)) not in lengths:
            raise _damaged(what, entry)
    return value


def _by_name(what: str, pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, value in pairs:
        parts = _typed(f"the name of a {what}", name, str).split("/")
        if not all(parts) or len(parts) > MOST_PARTS or name in found:
            raise _damaged(f"the name of a {what}, or it appears twice", name)
        found[name] = value
    return found


def _layer(entry: list[Any]) -> tuple[str, LayerForm]:
    name, sizes, minus, plus, constant, *form = entry
    shape = _shape("the shape of a layer", sizes)
    if not shape:
        raise _damaged("the shape of a layer", sizes)
    size = math.prod(shape)
    _whole("the elements of -1 in a layer", minus, 0, size)
    _whole("the elements of +1 in a layer", plus, 0, size - minus)
    counts = Counts(minus, plus, size)
    block = _block(counts, shape, form) if form else None
    if constant == OWN:
        if minus:
            raise _damaged("the elements of -1 in a layer of its own values", minus)
        return name, LayerForm(shape, counts, None, plus, block)
    return name, LayerForm(shape, counts, _constants(constant), None, block)


def _block(counts: Counts, shape: Shape, form: list[Any]) -> BlockForm:
    """Return the form of a layer's block, whose rows and columns are enough for its elements, and have some each."""
    rows, columns, *parts = form
    kept, numbers = counts.minus + counts.plus, []
    for what, value, most in zip(("rows", "columns"), (rows, columns), matrix_shape(shape), strict=True):
        name = f"the live {what} of a layer"
        each = _each(name, [value], 2)[0] if parts else [value, 0]
        first = _whole(name, each[0], 0, min(most, kept))
        numbers.append((first, _whole(name, each[1], 0, min(most, kept) - first)))
    sizes = [sum(numbers[0]) * sum(numbers[1])]
    if parts:
        sizes = [row * column for row in numbers[0] for column in numbers[1]]
    if kept > sum(sizes) or not counts.size:  # of no elements there may be any number of rows
        raise _damaged("the live rows and columns of a layer", [rows, columns])
    found = _each("the parts of a layer", parts[0], 2) if parts else [counts[:2]]
    if len(found) != len(sizes):
        raise _damaged("the parts of a layer", parts)
    for (minus, plus), size in zip(found, sizes, strict=True):
        _whole("the parts of a layer", minus, 0, size)
        _whole("the parts of a layer", plus, 0, size - minus)
    if tuple(map(sum, zip(*found, strict=True))) != counts[:2]:
        raise _damaged("the parts of a layer", parts)
    forms = tuple(Counts(minus, plus, size) for (minus, plus), size in zip(found, sizes, strict=True))
    return BlockForm(numbers[0], numbers[1], forms)


def _value(entry: list[Any]) -> tuple[str, Shape]:
    name, sizes = entry
    return name, _shape("the shape of a value", sizes)


def _shape(what: str, sizes: Any) -> Shape:
    if len(_typed(what, sizes, list)) > MOST_AXES:
        raise _damaged(what, sizes)
    shape = tuple(_whole(what, size, 0, 2**31 - 1) for size in sizes)
    if math.prod(max(size, 1) for size in shape) > MOST_ELEMENTS:
        raise _damaged(what, sizes)
    return shape


def _constants(value: Any) -> float | tuple[float, float] | None:
    if type(value) is list:
        [(minus, plus)] = _each("the constant of a layer, or its two", [value], 2)
        return _constant(minus), _constant(plus)
    return None if value is None else _constant(value)


def _constant(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) < MOST_CONSTANT or float(np.float32(value)) != value:
        raise _damaged("the constant of a layer, which must be a float32", value)
    return float(value)


def _check_paths(layers: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Raise UserError where two parameters have the same path in the net's variables, or one lies inside another."""
    paths = sorted([*(("params", *kernel_path(name)) for name in layers), *(name_path(name) for name in values)])
    for one, next_ in pairwise(paths):
        if next_[: len(one)] == one:
            raise _damaged("two parameters in one place", "/".join(one))
    if paths and min(map(len, paths)) < 2:
        raise _damaged("a value without a collection", "/".join(min(paths, key=len)))


def _architecture(fields: Any) -> Architecture | None:
    if fields is None:
        return None
    what = "architecture"
    if {field.name for field in dataclasses.fields(Architecture)} != set(_typed(what, fields, dict)):
        raise _damaged(what, sorted(fields))
    for name, kind in (("model", str), ("batch_norm", str), ("classes", int), ("projections", int)):
        _typed(f"{what}: {name}", fields[name], kind)
    inputs = _shape(f"{what}: inputs", fields["inputs"])
    return _known(lambda: Architecture(**{**fields, "inputs": inputs}))


def _known(make: Callable[[], Architecture]) -> Architecture:
    try:
        return make()
    except UserError as error:  # whose text may be of any length
        raise UserError(f"its header is damaged: architecture: {str(error)[:120]}") from error


def _kernel_shapes(net: Architecture) -> dict[str, Shape]:
    return kernel_shapes(graph(net), net.inputs)


def _check_shapes(what: str, found: Mapping[str, Shape], wanted: Mapping[str, Shape]) -> None:
    if dict(found) != dict(wanted):
        other = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
        raise UserError(f"its {what} do not match its architecture: {short(other)}")


def _class_names(names: Any, net: Architecture | None) -> tuple[str, ...]:
    if not all(type(name) is str for name in _typed("class_names", names, list)):
        raise _damaged("class_names", names)
    if net is not None and len(names) not in (0, net.classes):
        raise UserError(f"{len(names)} class names for {net.classes} classes")
    return tuple(names)


def _about(about: Any) -> dict[str, Any]:
    """Return the information for people; only the numbers that programs format are type-checked."""
    for name in ("test_accuracy", "remaining_weights"):
        value = _typed("about", about, dict).get(name, 0.0)
        if type(value) not in (int, float) or not 0 <= value <= 1:
            raise _damaged(f"about: {name}", value)
    return about


def _recipe(recipe: Any, net: Architecture | None, drawn: set[str]) -> dict[str, Any] | None:
    """Return the recipe of the frozen weights of the layers `drawn`; `Config` checks the rest of its configuration."""
    if (recipe is None) != (not drawn):
        raise UserError("its header is damaged: a recipe of frozen weights is missing, or not needed")
    if recipe is None:
        return None
    if set(_typed("recipe", recipe, dict)) != {"config", "seed", "hashes"} or net is None:
        raise _damaged("recipe", sorted(recipe))
    _whole("recipe: seed", recipe["seed"], 0, 2**32 - 1)
    hashes = _typed("recipe: hashes", recipe["hashes"], dict)
    known = all(type(text) is str and re.fullmatch("[0-9a-f]{16}", text) for text in hashes.values())
    if set(hashes) != drawn or not known:
        raise _damaged("recipe: hashes", hashes)
    config = _typed("recipe: config", recipe["config"], dict)
    if not all(type(value) in (str, int, float, bool) for value in config.values()) or not isinstance(
        config.get("model"), str
    ):
        raise _damaged("recipe: config", config)
    usual = {one.name: one.default for one in dataclasses.fields(Architecture)}
    usual["batch_norm"] = "frozen" if config["model"] in BLOCKS else "none"
    # Otherwise another net would be drawn, of any size.
    if _known(lambda: architecture((usual | config).__getitem__, net.inputs, net.classes)) != net:
        raise UserError("its header is damaged: the recipe of frozen weights has another architecture")
    return recipe
