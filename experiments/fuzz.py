"""Loads many damaged and hostile artefacts: `python experiments/fuzz.py --mutations=100000 [FILE.ssm ...]`."""

import faulthandler
import importlib
import multiprocessing
import random
import re
import resource
import shlex
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import tyro

from ssm.errors import UserError
from ssm.export import Artifact, load
from ssm.models.graph import graph, kernel_shapes, value_shapes
from ssm.runs.program import command, run_program

MOST_WEIGHTS = 1 << 22
MOST_MEMORY = MOST_WEIGHTS + (64 << 20)  # bytes of Python and NumPy, beside four times the file's
ROOM = 512 << 20  # bytes of address space for all there is, the coder's own memory, too
MOST_SECONDS = 5.0  # of processor time for one file
MUTATED = "mutated.ssm"  # name of the file that is loaded
HANGS = 120.0  # seconds after which a file that is still being loaded ends the process


@dataclass(frozen=True, kw_only=True)
class Options:
    """Load so many mutations of artefacts; each must be refused with one message, or load as a net that fits together.

    Exit status 1 if a file did anything else (another exception, a crash, a hang, too much memory or time); the file is
    then saved in --out."""

    files: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Artefacts to mutate beside those that the program makes: constants, batch normalisation, weights drawn again."""
    mutations: int = 100_000
    """How many."""
    seed: int = 0
    """Of the mutations; the same seed makes the same ones."""
    out: Path = Path("fuzz")
    """Folder for files that were not refused as they should be."""


@dataclass
class Tally:
    """What came of the loads so far."""

    refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # by kind of mutation, and by message
    loaded: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, bytes]] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")  # seconds of processor time
    largest: tuple[int, str] = (0, "")  # bytes

    def take(self, kind: str, path: Path, loader: Callable[[Path], Artifact]) -> None:
        """Load one file and note what came of it."""
        data = path.read_bytes()
        artifact = refusal = fault = None
        tracemalloc.start()
        start = time.process_time()
        try:
            artifact = loader(path)
        except UserError as error:
            refusal = str(error)
        except BaseException as error:  # a panic of the coder's is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            fault = f"{type(error).__name__}: {error}"
        seconds, memory = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if artifact is not None:
            try:
                fault = inconsistency(artifact)
            except UserError as error:
                fault = f"loaded, but not saved again: {error}"
        if seconds > MOST_SECONDS:
            fault = f"{seconds:.1f} s of processor time"
        if memory > MOST_MEMORY + 4 * len(data):
            fault = f"{memory:,} bytes of memory"
        if fault is not None:
            self.faults.append((f"{kind}: {fault}", data))
        elif refusal is not None:
            self.refused[kind, _class(refusal, path)] += 1
        else:
            self.loaded[kind] += 1
        self.slowest = max(self.slowest, (seconds, kind))
        self.largest = max(self.largest, (memory, kind))

    def lines(self) -> list[str]:
        """Return the summary."""
        refused: Counter[str] = Counter()
        messages: Counter[str] = Counter()
        faults = Counter(text.split(":")[0] for text, _ in self.faults)
        for (kind, message), count in self.refused.items():
            refused[kind] += count
            messages[message] += count
        kinds = sorted({*refused, *self.loaded, *faults})
        rows = [(kind, refused[kind], self.loaded[kind], faults[kind]) for kind in kinds]
        rows.append(("all", refused.total(), self.loaded.total(), faults.total()))
        lines = [f"{'mutation':16} {'refused':>9} {'loaded':>9} {'else':>9}"]
        lines += [f"{kind:16} {no:9,} {yes:9,} {other:9,}" for kind, no, yes, other in rows]
        lines += ["", "refused with:"] + [f"{count:9,}  {message}" for message, count in messages.most_common()]
        lines += ["", f"slowest load: {1000 * self.slowest[0]:.1f} ms of processor time ({self.slowest[1]})"]
        return [*lines, f"largest peak of one load: {self.largest[0] / 2**20:.1f} MiB ({self.largest[1]})"]


def _class(message: str, path: Path) -> str:
    """Return what messages of one cause have in common."""
    message = message.removeprefix(f"{path}: ")
    parts = message.split(": ")
    head = ": ".join(parts[:2]) if parts[0].startswith("its header is damaged") else parts[0]
    return re.sub(r"[-+]?\d[\d,.]*", "#", head.split(" (")[0].split("'")[0])[:70]


def inconsistency(artifact: Artifact) -> str | None:
    """Return what does not fit in an artefact that was loaded; None if it is one that could have been saved."""
    from ssm.export.loading import load_bytes
    from ssm.export.serialization import to_bytes

    arrays = artifact.to_numpy()
    for name, array in arrays.items():
        if array.dtype != np.int8 or not np.isin(array, (-1, 0, 1)).all():
            return f"layer {name} is not ternary"
    if any(value.dtype != np.float32 or not np.isfinite(value).all() for value in artifact.values.values()):
        return "values are not finite float32"
    shapes = {name: array.shape for name, array in arrays.items()}
    if net := artifact.architecture:
        if shapes != kernel_shapes(graph(net), net.inputs):
            return "layers are not those of the architecture"
        if {name: value.shape for name, value in artifact.values.items()} != value_shapes(net):
            return "values are not those of the architecture"
    again = load_bytes(to_bytes(artifact), most_weights=MOST_WEIGHTS)
    same = [again.layers[name].constant == layer.constant for name, layer in artifact.layers.items()]
    same += [np.array_equal(again.to_numpy()[name], array) for name, array in arrays.items()]
    same += [again.values[name].tobytes() == value.tobytes() for name, value in artifact.values.items()]
    for name in ("architecture", "precision", "class_names", "about", "recipe"):
        same.append(getattr(again, name) == getattr(artifact, name))
    return None if all(same) else "saved again, it is another"


def work(files: Sequence[bytes], options: Options, folder: Path, connection: Connection) -> None:
    """Load all mutations in this process, under limits that end it where a load goes beyond them."""
    from fuzz_mutations import MUTATIONS

    statm = Path("/proc/self/statm")
    importlib.import_module("ssm.export.serialization")  # what is loaded once is no file's doing
    if statm.exists():
        used = int(statm.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))
    rng = random.Random(options.seed)
    kinds = [*MUTATIONS, *["value"] * 6]  # of which there are most: each place of a header, each wrong thing
    tally, path = Tally(), folder / MUTATED
    for number in range(options.mutations):
        if number % 100 == 0:
            faulthandler.dump_traceback_later(HANGS, exit=True)
        kind = kinds[number % len(kinds)]
        path.write_bytes(MUTATIONS[kind](rng.choice(files), rng.choice(files), rng))
        tally.take(kind, path, lambda path: load(path, most_weights=MOST_WEIGHTS))
    faulthandler.cancel_dump_traceback_later()
    connection.send(tally)


def main(options: Options) -> None:
    """Mutate, load, and say what came of it.

    Raises:
        UserError: for a file that is no artefact.  SystemExit: with 1 if a file was not refused as it should be.
    """
    if options.mutations < 1:
        raise UserError(f"--mutations={options.mutations}: give 1 or more")
    for path in options.files:
        load(path)
    from fuzz_mutations import examples

    files = [*examples(), *(path.read_bytes() for path in options.files)]
    started = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=work, args=(files, options, Path(folder), theirs))
        worker.start()
        theirs.close()
        try:
            tally = ours.recv()
        except EOFError:  # it ended without a word: the file that it was at is still there
            worker.join()
            fault, path = f"crash or hang: the process ended with status {worker.exitcode}", Path(folder) / MUTATED
            tally = Tally(faults=[(fault, path.read_bytes() if path.exists() else b"")])
        worker.join()
    print("$ " + shlex.join(command()))
    print(f"{options.mutations:,} mutations of {len(files)} artefacts, {time.monotonic() - started:.0f} s")
    print("\n".join(tally.lines()))
    for number, (fault, data) in enumerate(tally.faults[:100]):
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / f"fault-{number:02d}.ssm"
        path.write_bytes(data)
        print(f"{path}: {fault}")
    if tally.faults:
        sys.exit(1)


if __name__ == "__main__":
    run_program(main, Options)
