"""A net as one C99 file: its ternary layers as sums and differences, without a library, a heap or a state of its own.

    python experiments/export.py NET --out net.c && cc -O3 -DNET_MAIN net.c -lm -o net && ./net digit.pgm

Its functions are in `ssm/export/c/`; its tables are made here, of an artefact's compacted net.
"""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

import numpy as np
from jaxtyping import Int

from ssm.errors import UserError
from ssm.export.artifact import Artifact
from ssm.export.compaction import Compact
from ssm.models.description import PAIRS
from ssm.models.graph import Node, Shape

BLOCK = 64  # numbers that a convolution sums at once
NETPBM = {1: "5", 3: "6"}  # the kind of a binary PGM or PPM, by channels
LINE = 120
RESCALED = {
    "dense": "".join(f"\n        {sum_} *= ratio;" for sum_ in "abcd"),
    "conv": "\n            for (int k = 0; k < BLOCK; k++)\n                sum[k] *= ratio;",
}
"""How the sum of the inputs whose weights are above 0 is made ready, where the layer has a constant for each sign."""


def to_c(artifact: Artifact, *, name: str = "net") -> str:
    """Return C source of a function `NAME_logits`, from the bytes of one raw image to its logits.

    `name` begins the file's public names; what C does not allow in one becomes an underscore.  Compiled with the macro
    NAME_MAIN the file is a program that classifies a PGM file, or a PPM file if the net takes three channels.

    Raises:
        UserError: for a ResNet or the user's own net, for one whose weights do not share a magnitude by layer or by
            layer and sign, and for one too large for a C compiler's int.
    """
    net = artifact.known()
    if net.model != "fcn" and net.model not in PAIRS:
        raise UserError(f"C files are written of the FCN and the Conv nets, not of {net.model}; .onnx takes every net")
    if own := [layer for layer, each in artifact.layers.items() if each.own is not None]:
        raise UserError(
            f"{', '.join(own)} hold{'s' * (len(own) == 1)} {artifact.own_values:,} values of their own; a C file is "
            "for ternary layers, which it adds and subtracts; .onnx takes every net"
        )
    if other := [layer for layer, each in artifact.layers.items() if each.drawn]:
        raise UserError(
            f"the weights of {', '.join(other)} do not share one magnitude, and a C file only adds and subtracts: it "
            "takes nets of signed constants; .onnx takes every net"
        )
    name = _public_name(name)
    body = _Body(artifact.compact())
    if 2 * body.area >= 1 << 31:
        raise UserError(
            f"{net.model} on images of {net.inputs} is too large for C: its activations have {body.area:,} places"
        )
    height, width, channels = net.inputs
    defined = {"HEIGHT": height, "WIDTH": width, "CHANNELS": channels, "VALUES": height * width * channels}
    defined |= {"CLASSES": net.classes, "BORDER": body.border, "WORK": 2 * body.area, "BLOCK": BLOCK}
    defined |= {"PLANE": (height + 2 * body.border) * (width + 2 * body.border)}
    if body.border:
        defined |= {"MOST_TAPS": body.taps}
    parts = [
        _about(artifact, name, defined),
        _source("head", NET_MAIN=_macro(name)),
        "".join(f"#define {key} {value}\n" for key, value in defined.items()),
        *body.tables,
        _source("common"),
        *([_source("planes")] if body.border else []),
        *(_function(*one) for one in sorted(body.used)),
        _source("net", NET=name, CALLS="\n    ".join(body.calls)),
    ]
    if channels in NETPBM:
        names = ", ".join(map(_quoted, artifact.class_names or map(str, range(net.classes))))
        words = {"NET": name, "NET_MAIN": _macro(name), "NAMES": names, "KIND": f"'{NETPBM[channels]}'"}
        parts.append(_source("main", **words))
    return "\n".join(parts)


class _Body:
    """The calls of a net's function, in order, and the tables that they name.

    calls, tables: lines of C.  used: the functions that are made, for a type of index and one constant or two.
    border: 1 where there are convolutions, whose channels are planes with a border of 0.  taps: the most of a
    convolution.  area: the most numbers of an output; two areas of the caller's memory take turns.
    """

    def __init__(self, net: Compact) -> None:
        self.calls = ["standardise(image, flip, x);"]
        self.tables: list[str] = []
        self.used: set[tuple[str, str, bool]] = set()
        self.border = int(any(node.op == "conv" for node in net.nodes))
        self.taps = self.area = 0
        self._areas = "x", "y"
        self._shape = net.inputs  # later [units]
        self._positions = np.arange(0)  # in the area, of the features
        self._clear()
        *inner, last = net.nodes[1:]
        for node in inner:
            self._add(node, net.kernels.get(node.name), "")
        self._add(last, net.kernels[last.name], "logits")

    def _add(self, node: Node, kernel: np.ndarray | None, to: str) -> None:
        """Add an operation, whose output goes to the other area unless it is named."""
        match node.op, kernel:
            case "elu", _:
                self.calls.append(f"elu({self._areas[0]}, {self._count});")
            case "flatten", _:
                height, width, channels = self._shape
                planes = np.arange(self._count).reshape(channels, height + 2 * self.border, width + 2 * self.border)
                inner = slice(self.border, -self.border or None)
                self._positions = planes[:, inner, inner].transpose(1, 2, 0).ravel()
            case "select", _:
                self._positions = self._positions[list(node.indices)]
            case "pool", _:
                height, width, channels = self._shape
                self._call("pool", (channels, height, width), (height // 2, width // 2, channels), to)
            case "conv", kernel if kernel is not None:
                height, width, inputs = self._shape
                # A tap is an input channel times 9, plus the place in its window.
                taps = np.arange(9 * inputs).reshape(inputs, 9).T.ravel()
                self.taps = max(self.taps, taps.size)
                function, *tables = self._layer(node, kernel, taps, zero=taps.size)
                self._call(function, (*tables, inputs, node.size, height, width), (height, width, node.size), to)
            case "dense", kernel if kernel is not None:
                function, *tables = self._layer(node, kernel, self._positions, zero=self._count)
                self._call(function, (*tables, node.size), (node.size,), to)
                self._positions = np.arange(node.size)
            case _:
                raise AssertionError(node)

    @property
    def _count(self) -> int:
        """The numbers of the last output, with the borders of its planes; the next one is 0."""
        if len(self._shape) == 1:
            return self._shape[0]
        height, width, channels = self._shape
        return channels * (height + 2 * self.border) * (width + 2 * self.border)

    def _call(self, function: str, arguments: Iterable[int | str], shape: Shape, to: str) -> None:
        source, other = self._areas
        self.calls.append(f"{function}({', '.join(map(str, (source, *arguments, to or other)))});")
        self._areas, self._shape = (other, source), shape
        if not to:
            self._clear()

    def _clear(self) -> None:
        """Add the call that makes the numbers around and behind the last output 0."""
        area = self._areas[0]
        if self.border and len(self._shape) == 3:
            height, width, channels = self._shape
            self.calls.append(f"clear_borders({area}, {channels}, {height}, {width});")
            self.area = max(self.area, self._count + self._count // channels + BLOCK)
        else:
            self.calls.append(f"{area}[{self._count}] = 0.0f;")
            self.area = max(self.area, self._count + 1)

    def _layer(self, node: Node, kernel: np.ndarray, positions: Int[np.ndarray, " inputs"], *, zero: int) -> list[str]:
        """Add a layer's tables, and return the names of its function and of the tables, and its constant.

        Where both signs have one, it is that of the weights below 0, and the ratio of the other to it is the next.
        `positions` are what the kernel's inputs are called in the table, `zero` what is 0.
        """
        kernel = kernel.reshape(-1, node.size)
        dtype = np.min_scalar_type(zero).name
        index, fours = [], []
        for unit in kernel.T:
            for kept in (unit > 0, unit < 0):
                chosen = np.sort(positions[kept])
                index += [*chosen, *[zero] * (-len(chosen) % 4)]
                fours.append(-(-len(chosen) // 4))
        layer = re.sub(r"\W", "_", node.name.lower())
        minus, plus = (float(max(end, 0)) for end in (-kernel.min(), kernel.max()))
        two = bool(minus and plus and minus != plus)
        self.used.add((node.op, dtype, two))
        self.tables += [_table(dtype, f"{layer}_index", index), _table(dtype, f"{layer}_fours", fours)]
        constants = [_float(minus), _float(plus / minus)] if two else [_float(max(minus, plus))]
        return [_name(node.op, dtype, two), f"{layer}_index", f"{layer}_fours", *constants]


def _name(op: str, dtype: str, two: bool) -> str:
    return f"{op}{'2' * two}_{dtype}_t"


def _function(op: str, dtype: str, two: bool) -> str:
    """Return the function of a layer, for a type of index and for one constant or two."""
    more = {"TWO": "2", "RATIO": " float ratio,", "RESCALED": RESCALED[op]}
    return _source(op, INDEX=f"{dtype}_t", **(more if two else dict.fromkeys(more, "")))


def _table(dtype: str, name: str, values: Sequence[int]) -> str:
    numbers = textwrap.fill(", ".join(map(str, values)) or "0", LINE, initial_indent="    ", subsequent_indent="    ")
    return f"static const {dtype}_t {name}[] = {{\n{numbers}\n}};\n"


def _float(value: float) -> str:
    """Return a constant that a compiler reads as this float32."""
    text = f"{value:.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _quoted(text: str) -> str:
    """Return a string constant; all but letters, digits, spaces and a few marks as octal numbers of UTF-8."""
    data = text.replace("\0", " ").encode(errors="replace")
    return '"' + re.sub(rb"[^\w .,:;()+-]", lambda byte: b"\\%03o" % byte[0][0], data).decode("ascii") + '"'


def _public_name(text: str) -> str:
    name = re.sub(r"\W", "_", text, flags=re.ASCII).strip("_") or "net"
    return f"net_{name}" if name[0].isdigit() else name


def _macro(name: str) -> str:
    return f"{name.upper()}_MAIN"


def _source(name: str, **words: str) -> str:
    """Return a file of `ssm/export/c`, with words in capitals replaced."""
    text = files("ssm.export").joinpath("c", f"{name}.c").read_text(encoding="ascii")
    if not words:
        return text
    return re.sub("|".join(sorted(words, key=len, reverse=True)), lambda word: words[word[0]], text)


def _about(artifact: Artifact, name: str, defined: Mapping[str, int]) -> str:
    """Return the comment at the file's head."""
    net, about = artifact.known(), artifact.about
    facts = f"{net.model}: {artifact.remaining:,} of {artifact.weights:,} weights"
    if "test_accuracy" in about:
        facts += f", test accuracy {100 * about['test_accuracy']:.2f} %"
    if "run" in about:
        facts += f"; seed {about.get('seed')} of {about['run']}"
    facts = re.sub(r"[^\w .,:;%()-]", "_", facts, flags=re.ASCII)
    height, width, channels = net.inputs
    arguments = f"image[{defined['VALUES']}], float logits[{net.classes}], float work[{defined['WORK']}]"
    lines = [
        f"/* {facts}",
        "",
        "   C99; of the library only sqrt.  No heap, no state.  Compile it with -O3.",
        "",
        f"       void {name}_logits(const uint8_t {arguments});",
        f"       void {name}_logits_int8(const int8_t {arguments});",
        "",
        f"   image: {height} rows of {width} pixels of {channels} numbers, as in an image file; of int8: less 128.",
        "   work: memory for the activations, whose contents do not matter.  "
        f"The stack has {4 * defined.get('MOST_TAPS', 0) + 16 * BLOCK:,} bytes more, about.",
    ]
    if channels in NETPBM:
        kind = "PGM" if channels == 1 else "PPM"
        lines += [
            "",
            f"   A program: cc -O3 -D{_macro(name)} {name}.c -lm -o {name}",
            f"   {name} FILE prints the classes and their logits, the largest first; FILE is a binary {kind}.",
        ]
    return "\n".join([*lines, "*/", ""])
