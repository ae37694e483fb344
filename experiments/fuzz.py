"""Loads many damaged and hostile artefacts: `python experiments/fuzz.py --mutations=100000 --seed=0`."""

import faulthandler
import json
import random
import re
import resource
import time
import tracemalloc
import zlib
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ssm.errors import UserError
from ssm.export import Artifact, Layer, load
from ssm.export.container import HEAD, MOST_HEADER, pack_text, sign, unpack
from ssm.export.loading import load_bytes
from ssm.export.serialization import to_bytes
from ssm.models.graph import Architecture, graph, kernel_shapes, value_shapes
from ssm.runs.program import command, run_program

# Bytes of Python and NumPy beside four times the file's; of address space for all there is, the coder's own, too.
MOST_WEIGHTS, MOST_MEMORY, ROOM = 1 << 22, (1 << 22) + (64 << 20), 512 << 20
MOST_SECONDS, HANGS = 5.0, 120  # of processor time for one file; of any time, which ends the process
AT = Path("mutated.ssm")
# All but the first have a right checksum.  Of headers there are most: each place of one, each wrong thing.
KINDS = ("bytes", "body", "lengths", "bomb", "text", "values", "words", "shapes", *["header"] * 6)
NUMBERS = (0, 1, 3, 4, 65535, 1 << 22, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1, MOST_HEADER, MOST_HEADER + 1)
# What a header may hold at any place: JSON, or nearly.
HOSTILE = r"""null true -1 2 0.5 -0.0 1e999 -1e999 1e-50 NaN Infinity 9223372036854775808 1e30 1.7e308 16777217 {} []
    [[]] [null] [0] [-1] [2147483647,0] [2147483647,2147483647,2147483647] [1.0,2.0] [true] "" "/" "a/b" "../../x"
    "\ud800" "\u0000" "\u001b[2J" "fcn" "conv8" "bfloat16" "Dense_0" "Mine" {"model":[]} {"a":1,"a":2}"""
LONG = ("9" * 400, "9" * 5000, "[" * 40 + "]" * 40, "[" * 5000 + "]" * 5000, f'"{"x" * 5000}"', *map(str, NUMBERS))


@dataclass(frozen=True, kw_only=True)
class Options:
    """Load damaged artefacts; the first neither refused by one message nor a sound net is left as mutated.ssm."""

    mutations: int = 100_000
    seed: int = 0


def examples() -> list[bytes]:
    """Return small artefacts: of constants, weights drawn again with batch normalisation, an own module, two constants
    in a layer, values of its own, and dead units."""
    rng, found, named = np.random.default_rng(0), [], {"class_names": ("a", "b", "ç"), "about": {"accuracy": 0.5}}
    fcn = Architecture(model="fcn", inputs=(4, 4, 1), classes=3, width=0.05)
    config: dict[str, Any] = {"model": "resnet20", "width": 0.1, "batch_norm": "affine"}
    resnet = Architecture(inputs=(4, 4, 3), classes=2, **config)
    small, large = (kernel_shapes(graph(net), net.inputs) for net in (fcn, resnet))
    recipe = {"config": {**config, "init": "he"}, "seed": 3, "hashes": dict.fromkeys(large, "0123456789abcdef")}
    nets: list[tuple[Any, float | None, Any, dict[str, Any]]] = [
        (small, 0.25, {}, {"architecture": fcn, **named}),
        (large, None, value_shapes(resnet), {"architecture": resnet, "recipe": recipe}),
        ({"Mine": (3, 2, 5), "A/embedding": (40, 7), "Empty": (0, 4)}, 1.5, {"params/b": (5,)}, {"architecture": None}),
    ]
    for shapes, constant, values, more in nets:
        layers = {name: Layer(rng.integers(-1, 2, shape, np.int8), constant) for name, shape in shapes.items()}
        arrays = {name: rng.random(shape, np.float32) for name, shape in values.items()}
        found.append(to_bytes(Artifact(layers=layers, values=arrays, **more)))
    signs = {name: rng.integers(-1, 2, shape, np.int8) for name, shape in small.items()}
    mixed = {name: Layer(ternary, (0.25, 0.5)) for name, ternary in signs.items()}
    own = 1 - rng.random(np.count_nonzero(signs["Dense_1"]), np.float32)
    mixed["Dense_1"] = Layer(np.abs(signs["Dense_1"]), None, own)
    dying = {name: rng.integers(-1, 2, (40, 30), np.int8) for name in ("A", "B", "C")}
    dying["A"][:, ::2], dying["B"][::3], dying["C"][8:, 6:] = 0, 0, 0  # of four parts the last
    dying["C"][8::5, 6::5] = 1
    blocks = {name: Layer(ternary, 2.0) for name, ternary in dying.items()}
    more = (Artifact(layers=mixed, architecture=fcn, **named), Artifact(layers=blocks, architecture=None, **named))
    return [*found, *map(to_bytes, more)]


def damaged(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return bytes with some bits flipped, or a piece lost, made up, said again or taken from another place."""
    if data and rng.random() < 0.4:
        flips = {1 << rng.randrange(8 * len(data)) for _ in range(rng.randrange(1, 9))}
        return (int.from_bytes(data, "big") ^ sum(flips)).to_bytes(len(data), "big")
    start, end = sorted(rng.choices((0, len(data), *(rng.randrange(len(data) + 1) for _ in range(6))), k=2))
    theirs, random = other[rng.randrange(len(other) + 1) :], rng.randbytes(rng.choice((4, 300, end - start)))
    piece = rng.choice((b"", random, data[start:end] * 2, theirs, theirs[: end - start]))
    return data[:start] + piece + rng.choice((data[end:], data[start:], b""))


def edited(tree: Any, other: dict[str, Any], rng: random.Random) -> Any:
    """Return a tree of JSON with one thing removed, wrapped, exchanged, another number, or "@hole@"."""
    if not (isinstance(tree, dict | list) and tree) or rng.random() < 0.1:
        near = [tree + by for by in (-1, 1, 0.5, 2**24)] if isinstance(tree, int | float) else [[tree]]
        return rng.choice((rng.choice(near), rng.choice([*other.values()]), "@hole@", "@hole@"))
    key = rng.choice([*tree] if isinstance(tree, dict) else range(len(tree)))
    if rng.random() < 0.1:
        del tree[key]
    else:
        tree[key] = edited(tree[key], other, rng)
    return tree


def mutated(kind: str, files: list[bytes], rng: random.Random) -> bytes:
    """Return one of sound files with something wrong, by one of KINDS, perhaps taken from another file."""
    data, other = rng.choices(files, k=2)
    head, body = [*HEAD.unpack_from(data)], data[HEAD.size :]
    ours, theirs = ([json.dumps(it[0]).encode(), it[1].tobytes(), it[2].tobytes()] for it in map(unpack, (data, other)))
    match kind:
        case "bytes":
            return damaged(damaged(data, other, rng) if rng.random() < 0.5 else data, other, rng)
        case "body":  # as long as the head says
            return sign(data[: HEAD.size], damaged(body, other, rng)[: len(body)].ljust(len(body), b"\0"))
        case "lengths":
            for place in rng.choices(range(1, 7), k=2):
                head[place] = rng.choice((*NUMBERS, head[place] + 4, head[place] - 4)) % (2**16 if place < 3 else 2**32)
            head[6] = rng.choice((head[6], max(0, len(body) - head[3] - head[5])))  # perhaps a sum that is right
            return sign(HEAD.pack(*head), body)
        case "bomb":  # inflates to more than the head says, or to just what is allowed
            many = rng.choice((*[4096] * 60, 349_524, 349_524, 349_525, 10_000_000))
            packed = zlib.compress(text := b"[" + rng.choice((b"[],", b"{},", b'"",')) * many + b"0]", 1)
            head[3:5] = len(packed), rng.choice((len(text), len(text) - 1, MOST_HEADER, 10))
            return sign(HEAD.pack(*head), packed + ours[1] + ours[2])
        case "shapes":  # of a module that no architecture describes
            shape = rng.choices((0, 1, 3, 64, 1000, 65536, 1 << 22, 2**31 - 1), k=rng.randrange(1, 4))
            minus = rng.choice((0, prod(shape) // 3, prod(shape)))
            many = [(f"L{n}", shape, minus, rng.choice((0, prod(shape) - minus)), 1.5) for n in range(rng.randrange(9))]
            own = {"layers": many, "values": [["a/b", [len(ours[1]) // 4]]], "architecture": None, "recipe": None}
            ours[0] = json.dumps(json.loads(ours[0]) | own | {"class_names": []}).encode()
            ours[2] = rng.choice((ours[2], b"", theirs[2]))
        case "header":
            text = json.dumps(edited(json.loads(ours[0]), json.loads(theirs[0]), rng))
            ours[0] = text.replace('"@hole@"', rng.choice((*HOSTILE.split(), *LONG))).encode()
        case _:
            place = ("text", "values", "words").index(kind)
            ours[place] = rng.choice((theirs[place], *[damaged(ours[place], theirs[place], rng)] * 4))
    version = head[1] if rng.random() < 0.9 else 1 + head[1] % 4
    return pack_text(ours[0][:MOST_HEADER], *(part[: len(part) // 4 * 4] for part in ours[1:]), version=version)


def main(options: Options) -> None:
    rng, files, started = random.Random(options.seed), examples(), time.monotonic()
    counts, reasons, slowest, largest = Counter[str](), Counter[str](), (0.0, ""), (0, "")
    for number in range(options.mutations):
        if number % 100 == 0:  # tracing slows mutating down, and each start of it leaves some memory behind
            tracemalloc.stop()
            made = [(kind, mutated(kind, files, rng)) for kind in rng.choices(KINDS, k=100)]
            tracemalloc.start()
        (kind, data), artifact = made[number % 100], None
        AT.write_bytes(data)
        faulthandler.dump_traceback_later(HANGS, exit=True)
        tracemalloc.reset_peak()
        start = time.process_time()
        try:
            artifact = load(AT, most_weights=MOST_WEIGHTS)
        except UserError as error:
            reasons[re.sub(r"( -|[\d(\['{]).*", "", str(error).removeprefix(f"{AT}: "))[:60]] += 1
        seconds, memory = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        assert seconds <= MOST_SECONDS and memory <= MOST_MEMORY + 4 * len(data), f"{seconds} s, {memory:,} bytes"
        if artifact is not None:  # it must be one that could have been saved
            assert all(np.isin(layer.ternary, (-1, 0, 1)).all() for layer in artifact.layers.values()), "not ternary"
            again = load_bytes(saved := to_bytes(artifact), most_weights=MOST_WEIGHTS)
            assert to_bytes(again) == saved and again.about == artifact.about, "saved again, it is another"
        counts[f"{kind} {'refused' if artifact is None else 'loaded'}"] += 1
        slowest, largest = max(slowest, (seconds, kind)), max(largest, (memory, kind))
    AT.unlink(missing_ok=True)
    print(f"$ {' '.join(command())}\n{options.mutations:,} mutations, {time.monotonic() - started:.0f} s: ", end="")
    print(f"{reasons.total():,} refused, {options.mutations - reasons.total():,} loaded, nothing else")
    print(*(f"{n:9,}  {name}" for name, n in [*sorted(counts.items()), *reasons.most_common(40)]), sep="\n")
    print(f"slowest {1e3 * slowest[0]:.0f} ms ({slowest[1]}), most memory {largest[0] / 2**20:.1f} MiB ({largest[1]})")


if __name__ == "__main__":
    if (statm := Path("/proc/self/statm")).exists():
        used = int(statm.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))
    run_program(main, Options)
