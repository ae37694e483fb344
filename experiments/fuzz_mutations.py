"""How experiments/fuzz.py damages artefacts; the later kinds have a right checksum."""

import copy
import dataclasses
import json
import random
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ssm.export import Artifact, Layer
from ssm.export.container import HEAD, MOST_HEADER, pack_text, sign
from ssm.export.serialization import to_bytes
from ssm.models.graph import Architecture, graph, kernel_shapes, value_shapes

Mutation = Callable[[bytes, bytes, random.Random], bytes]

# What a hostile header may hold where something else belongs; text is put in as it is.
HOSTILE = (
    *("null", "true", "false", "0", "-1", "1", "2", "0.5", "-0.0", "1e999", "-1e999", "1e-50", "NaN", "Infinity"),
    *("2147483647", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("1e30", "1e38", "3.4e38", "1.7e308", "9" * 400, "9" * 5000, "0." + "1" * 400, "16777217"),
    *('""', '"/"', '"a/b"', '"../../x"', '"\\ud800"', '"\\u0000"', '"\\u001b[2J"', '"' + "x" * 5000 + '"'),
    *("[]", "{}", "[[]]", "[null]", "[0]", "[-1]", "[2147483647,0]", "[2147483647,2147483647,2147483647]"),
    *("[0,2147483647,2147483647,2147483647]", "[1.0,2.0]", "[true,true]", "[1,1,1,1,1,1,1,1,1]", '["1","2"]'),
    *("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "[" * 5000 + "]" * 5000),
    *('{"a":1,"a":2}', '{"model":"fcn"}', '"fcn"', '"resnet20"', '"conv8"', '"float32"', '"Dense_0"', '"embedding"'),
    '{"inputs":[1,1,1],"model":[],"classes":{}}',
)
NUMBERS = (0, 1, 3, 4, 255, 65535, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1, MOST_HEADER, MOST_HEADER + 1)
FLOATS = (0.0, -0.0, -1.0, float("nan"), float("inf"), -float("inf"), 3.4e38, 1e-45)
_HOLE = "@hole@"


def examples() -> list[bytes]:
    """Return small artefacts: of constants, batch normalisation, weights drawn again, and a user's own module."""
    rng = np.random.default_rng(0)

    def layers(shapes: Mapping[str, tuple[int, ...]], constant: float | None) -> dict[str, Layer]:
        return {
            name: Layer(rng.choice(np.asarray([-1, 0, 0, 0, 1], np.int8), shape), constant)
            for name, shape in shapes.items()
        }

    fcn = Architecture(model="fcn", inputs=(4, 4, 1), classes=3, width=0.05)
    resnet = Architecture(model="resnet20", inputs=(4, 4, 3), classes=2, width=0.1, batch_norm="affine")
    shapes = {net.model: kernel_shapes(graph(net), net.inputs) for net in (fcn, resnet)}
    config = {**dataclasses.asdict(fcn), "init": "he", "weight_distribution": "uniform", "learning_rate": 0.1}
    drawn = {
        "config": {name: value for name, value in config.items() if name not in ("inputs", "classes")},
        "seed": 3,
        "hashes": dict.fromkeys(shapes["fcn"], "0123456789abcdef"),
    }
    about = {"run": "made", "seed": 3, "test_accuracy": 0.5}
    made = [
        Artifact(layers=layers(shapes["fcn"], 0.25), architecture=fcn, class_names=("a", "b", "ç"), about=about),
        Artifact(
            layers=layers(shapes["resnet20"], 0.125),
            values={name: rng.random(shape, np.float32) for name, shape in value_shapes(resnet).items()},
            architecture=resnet,
        ),
        Artifact(layers=layers(shapes["fcn"], None), architecture=fcn, recipe=drawn, about=about),
        Artifact(
            layers=layers({"Mine": (3, 2, 5), "Rest/embedding": (40, 7), "Empty": (0, 4)}, 1.5),
            values={"params/Mine/bias": rng.random(5, np.float32), "batch_stats/Norm/mean": rng.random(4, np.float32)},
            architecture=None,
        ),
    ]
    return [to_bytes(artifact) for artifact in made]


def _parts(data: bytes) -> tuple[str, bytes, bytes]:
    """Return the header's text, the values and the words of a sound file."""
    _, _, _, packed, _, values, _, _ = HEAD.unpack_from(data)
    body = data[HEAD.size :]
    return zlib.decompress(body[:packed]).decode(), body[packed : packed + values], body[packed + values :]


def _pack(text: str | bytes, values: bytes, words: bytes) -> bytes:
    text = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return pack_text(text[:MOST_HEADER], values[: len(values) // 4 * 4], words[: len(words) // 4 * 4])


def _resign(data: bytes) -> bytes:
    return sign(data[: HEAD.size], data[HEAD.size :])


def _damaged(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return bytes with one thing wrong: bits, or a piece cut out, put in, said twice or taken from another place."""
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    if rng.random() < 0.5:
        end = min(end, start + rng.randrange(1, 9))
    match rng.randrange(6):
        case 0:
            return data[:start] + data[end:]
        case 1:
            return data[:start] + rng.randbytes(end - start) + data[end:]
        case 2:
            return data[:end] + data[start:end] * rng.randrange(1, 4) + data[end:]
        case 3:
            first = rng.randrange(len(other) + 1)
            return data[:start] + other[first : first + end - start] + data[end:]
        case _:
            return bits(data, other, rng)


def bits(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Flip up to eight bits."""
    found = bytearray(data)
    for _ in range(rng.randrange(1, 9) if data else 0):
        found[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(found)


def cut(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Cut the file off."""
    return data[: rng.randrange(len(data))]


def longer(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Add bytes at the end or in front."""
    added = rng.choice((b"\0", rng.randbytes(rng.randrange(1, 300)), other))
    return data + added if rng.random() < 0.7 else added + data


def splice(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Begin as one file and end as another."""
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def pieces(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Damage one to three places anywhere."""
    for _ in range(rng.randrange(1, 4)):
        data = _damaged(data, other, rng)
    return data


def body(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Damage the body, and make the checksum right."""
    return _resign(data[: HEAD.size] + _damaged(data[HEAD.size :], other, rng))


def lengths(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Let the head say other lengths or another version, and make the checksum right."""
    head = list(HEAD.unpack_from(data))
    for _ in range(rng.randrange(1, 3)):
        index = rng.randrange(1, 7)
        number = rng.choice((*NUMBERS, max(0, head[index] + rng.choice((-4, -1, 1, 4)))))
        head[index] = min(number, 65535 if index < 3 else 2**32 - 1)
    if rng.random() < 0.5:  # a sum that is right
        head[6] = max(0, len(data) - HEAD.size - head[3] - head[5]) % 2**32
    return sign(HEAD.pack(*head), data[HEAD.size :])


def bomb(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Pack a header that inflates to much more than the head says, or as much as is allowed."""
    _, values, words = _parts(data)
    size = rng.choices((1 << 14, MOST_HEADER, MOST_HEADER + 1, 30 << 20), (90, 5, 5, 1))[0]
    unit = rng.choice((b"[]", b"{}", b"0", b'"a"', b" "))
    text = b"[" + (unit + b",") * ((size - 1) // (len(unit) + 1) - 1) + unit + b"]"
    packed = zlib.compress(text, 1)
    said = rng.choice((len(text), len(text) - 1, MOST_HEADER, 10))
    head = list(HEAD.unpack_from(data))
    head[3:7] = len(packed), said, len(values), len(words)
    return sign(HEAD.pack(*head), packed + values + words)


def text(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Damage the header's text."""
    header, values, words = _parts(data)
    return _pack(_damaged(header.encode(), _parts(other)[0].encode(), rng), values, words)


def value(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Replace, remove, repeat, wrap or exchange something in the header."""
    header, values, words = _parts(data)
    tree, donor = json.loads(header), json.loads(_parts(other)[0])
    holes: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        parent, key = rng.choice(list(_places(tree)) or [(tree, "layers")])
        match rng.randrange(8):
            case 0:
                del parent[key]
            case 1:
                parent[key] = [parent[key]]
            case 2:
                parent[key] = copy.deepcopy(rng.choice([at[name] for at, name in _places(donor)]))
            case 3 if isinstance(parent, list):
                parent.insert(key, copy.deepcopy(parent[key]))
            case 4 if type(parent[key]) in (int, float):
                parent[key] += rng.choice((-1, 1, 0.5, 2**24, -(2**24)))
            case _:
                parent[key] = _HOLE
                holes.append(rng.choice(HOSTILE))
    found = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    for hole in holes:
        found = found.replace(f'"{_HOLE}"', hole, 1)
    return _pack(found, values, words)


def _places(tree: Any):
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], list | dict):
            yield from _places(tree[key])


def shape(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Give a net of no known architecture layers and values of any shapes and counts."""
    _, values, words = _parts(data)
    tree = json.loads(_parts(data)[0]) | {"architecture": None, "recipe": None, "class_names": []}
    sizes = (0, 1, 2, 3, 64, 1000, 4096, 65536, 1 << 22, 2**31 - 1, 2**31)
    layers, most = [], rng.choice((1, 2, 4, 40))
    for number in range(rng.randrange(most)):
        axes = [rng.choice(sizes[: rng.randrange(2, len(sizes) + 1)]) for _ in range(rng.randrange(1, 4))]
        elements = int(np.prod(axes, dtype=object))
        minus = rng.choice((0, elements, elements // 3, elements + 1))
        layers.append([f"L{number}", axes, minus, rng.choice((0, elements - minus, elements // 2)), 0.5])
    count = len(values) // 4
    tree |= {
        "layers": layers,
        "values": rng.choice(([], [["a/b", [count]]], [["a/b", [count, 0]], ["c/d", [1, count]]])),
    }
    return _pack(json.dumps(tree), values, rng.choice((words, b"", _parts(other)[2])))


def stream(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Damage the entropy-coded words."""
    header, values, words = _parts(data)
    made = _damaged(words, _parts(other)[2], rng) if rng.random() < 0.8 else rng.randbytes(4 * rng.randrange(40))
    return _pack(header, values, made)


def floats(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Damage the values, or put special ones among them."""
    header, values, words = _parts(data)
    if not values:
        return _pack(header, rng.randbytes(4 * rng.randrange(1, 9)), words)
    if rng.random() < 0.3:
        return _pack(header, _damaged(values, _parts(other)[1], rng), words)
    found = bytearray(values)
    struct.pack_into("<f", found, 4 * rng.randrange(len(values) // 4), rng.choice(FLOATS))
    return _pack(header, bytes(found), words)


def exchange(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Put parts of two files together."""
    one, two = _parts(data), _parts(other)
    return _pack(rng.choice((one[0], two[0])), rng.choice((one[1], two[1])), rng.choice((one[2], two[2])))


MUTATIONS: dict[str, Mutation] = {
    **{made.__name__: made for made in (bits, cut, longer, splice, pieces)},
    **{made.__name__: made for made in (body, lengths, bomb, text, value, shape, stream, floats, exchange)},
}
