"""What a compiled program of a GPU runs in a turn of its loops: kernels, and the bytes that they read and write.

It reads the text of a compiled program (`compiled.as_text()`).  An operand of which a kernel takes slices counts as
those slices, any other as a whole; what stays in a cache between two kernels is counted all the same.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

WIDTHS = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4}
WIDTHS |= {"s64": 8, "u64": 8, "f64": 8}
IDLE = {"parameter", "get-tuple-element", "tuple", "bitcast", "constant", "while", "after-all", "conditional", "call"}
SLICES = {"dynamic-slice", "gather", "slice"}
HEAD = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
LINE = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")
SHAPE = re.compile(rf"\b({'|'.join(WIDTHS)})\[([\d,]*)\]")


@dataclass(frozen=True)
class Instruction:
    """A line of a computation: result, operation, operands by name, and the rest of its text."""

    name: str
    shape: str
    operation: str
    operands: tuple[str, ...]
    text: str
    last: bool  # it is the computation's result

    def named(self, pattern: str) -> str:
        """Return the first group of a pattern in the text, empty if it isn't there."""
        found = re.search(pattern, self.text)
        return found.group(1) if found else ""


Computation: TypeAlias = Mapping[str, Instruction]


@dataclass(frozen=True)
class Turn:
    """A turn of a loop, loops within it left out: its kernels, and their bytes."""

    trips: int | None  # None where it is known only as the program runs
    kernels: tuple[Instruction, ...]
    bytes: int


def computations(text: str) -> Mapping[str, Computation]:
    """Return the computations of a program's text by name; the one it begins with is also there as `ENTRY`."""
    found: dict[str, dict[str, Instruction]] = {}
    body: dict[str, Instruction] = {}
    for line in text.splitlines():
        if head := HEAD.match(line):
            body = found[head.group(1)] = {}
            if line.startswith("ENTRY"):
                found["ENTRY"] = body
        elif one := LINE.match(re.sub(r"/\*.*?\*/", "", line)):
            name, shape, operation, rest = one.groups()
            operands = tuple(re.findall(r"%([\w.\-]+)", rest[: _end(rest)]))
            body[name] = Instruction(name, shape, operation, operands, rest, "ROOT " in line[:12])
    return found


def _end(text: str) -> int:
    """Return where the operands end: at the bracket that closes those before `text`."""
    depth = 1
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place
    return len(text)


def turns(found: Mapping[str, Computation], start: str = "ENTRY") -> Iterator[Turn]:
    """Return all loops of a program, those within others after them."""
    for line in found[start].values():
        if line.operation == "while":
            body = line.named(r"body=%?([\w.\-]+)")
            trips = line.named(r'known_trip_count":\{"n":"(\d+)"')
            kernels = tuple(own for own in found[body].values() if own.operation not in IDLE)
            total = sum(moved(found, found[body], own) for own in kernels)
            yield Turn(int(trips) if trips else None, kernels, total)
            yield from turns(found, body)


def size(shape: str) -> int:
    """Return the bytes of all arrays in a shape's text."""
    total = 0
    for kind, sides in SHAPE.findall(shape):
        count = WIDTHS[kind]
        for side in filter(None, sides.split(",")):
            count *= int(side)
        total += count
    return total


def moved(found: Mapping[str, Computation], body: Computation, kernel: Instruction) -> int:
    """Return the bytes that a kernel of a computation reads and writes."""
    operands = [body[name] for name in kernel.operands if name in body]
    inner = found.get(kernel.named(r"calls=%?([\w.\-]+)"))
    if inner is None or kernel.operation != "fusion":
        read = size(kernel.shape) if kernel.operation in SLICES else sum(size(one.shape) for one in operands)
        return read + size(_without_workspace(kernel))
    parameters = {int(one.named(r"^(\d+)")): one for one in inner.values() if one.operation == "parameter"}
    read = sum(_read(inner, parameters[place], size(one.shape)) for place, one in enumerate(operands))
    result = next(one for one in inner.values() if one.last)
    parts = [inner[name] for name in result.operands] if result.operation == "tuple" else [result]
    return read + sum(_written(inner, part) for part in parts)


def _without_workspace(kernel: Instruction) -> str:
    """Return the shape of a kernel's result without the scratch space that a library's call has last."""
    return re.sub(r",\s*[su]8\[\d*\]\S*\)$", ")", kernel.shape) if kernel.operation == "custom-call" else kernel.shape


def _read(inner: Computation, source: Instruction, whole: int) -> int:
    """Return the bytes of an operand of a fusion that are read."""
    total = 0
    for user in inner.values():
        if source.name not in user.operands:
            continue
        if user.operation == "bitcast":
            total += _read(inner, user, whole)
        elif user.operation in SLICES and user.operands[0] == source.name:
            total += size(user.shape)
        elif not (user.operation == "dynamic-update-slice" and user.operands[0] == source.name):
            return whole
    return min(total, whole)


def _written(inner: Computation, result: Instruction) -> int:
    """Return the bytes of a fusion's result that are written: of one that is updated in place, the update's."""
    while result.operation == "bitcast":
        result = inner[result.operands[0]]
    return size(inner[result.operands[1]].shape if result.operation == "dynamic-update-slice" else result.shape)
