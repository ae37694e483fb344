"""Inference of an artefact's net on one thread, by several programs.

    python experiments/benchmarks/inference.py --net=net.ssm

All return the same logits, which is checked first, of standardised float32 images; those in C of raw ones, which they
standardise themselves.  Ways take turns.
"""

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
# The FCN's first layer, whole and compacted, and Conv2's, compacted.
LAYERS = ((784, 300), (469, 92), (4422, 82))
DENSITIES = (0.01, 0.02, 0.05, 0.1, 0.2)
IN_C = "called in C"  # rather than by ctypes
XLA = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Time NumPy, SciPy, ssm.export.runtime, C, JAX and onnxruntime, batch 1 and batch 1,000, on one core."""

    net: Path = Path("net.ssm")
    """The artefact, as experiments/export.py writes it."""
    batches: tuple[int, ...] = (1, 1000)
    """Images at once."""
    rounds: int = 7
    """How often each way is timed."""
    densities: bool = False
    """Time single layers of several densities, dense and csr, instead, for the constants of ssm.export.runtime."""


def alone() -> None:
    """Keep this process, and the libraries that it will import, to one thread."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ["XLA_FLAGS"] = XLA
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def main(options: Options) -> None:
    """Print a table of microseconds.

    Raises:
        UserError: for an artefact that cannot be read, or batches and rounds that make no sense.
    """
    import numpy as np
    from turns import by_turns

    from ssm.errors import UserError
    from ssm.export import load
    from ssm.export.runtime import standardize
    from ssm.training.devices import environment

    if options.rounds < 1 or not options.batches or min(options.batches) < 1:
        raise UserError("--rounds and --batches: give 1 or more")
    if options.densities:
        print_densities(options)
        return
    artifact = load(options.net)
    inputs = artifact.runtime().inputs
    with tempfile.TemporaryDirectory() as folder:
        natives = natives_of(artifact, Path(folder))
    ways = ways_of(artifact) | natives
    where = environment()
    weights = f"{artifact.remaining:,} of {artifact.weights:,} weights"
    print(f"{where['processor']}, one thread; {options.net.name}: {weights}")
    for name, native in natives.items():
        print(f"Object file of {name}: {native.object_bytes:,} bytes")
    print("Microseconds a call, median of the rounds (fastest); over NumPy, dense: how many times as fast\n")
    print("| way | " + " | ".join(f"batch {batch} | over NumPy" for batch in options.batches) + " |")
    print("|---|" + "---|---|" * len(options.batches))
    rng = np.random.default_rng(0)
    tables = []
    for batch in options.batches:
        raw = rng.integers(0, 256, (batch, *inputs), np.uint8)
        standardised = standardize(raw)
        wanted = ways["NumPy, dense"](standardised)
        ready = {}
        for name, way in ways.items():
            images = raw if name in natives else standardised
            np.testing.assert_allclose(way(images), wanted, atol=1e-4 * np.abs(wanted).max())
            count = _calls(way, images)
            ready[name] = (partial(_repeat, way, images, count), count)
            if name in natives:
                ready[f"{name}, {IN_C}"] = (partial(_repeat_in_c, way, images, count), count)
        tables.append(by_turns(ready, options.rounds))
    for name in tables[0]:
        cells = []
        for table in tables:
            cells.append(f"{1e6 * table[name]['median']:,.1f} ({1e6 * table[name]['minimum']:,.1f})")
            cells.append(f"{table['NumPy, dense']['median'] / table[name]['median']:.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |")


def print_densities(options: Options) -> None:
    """Print how long the product of one dense layer takes, dense and as csr, by its density."""
    import numpy as np
    from scipy.sparse import csr_array
    from turns import by_turns

    from ssm.training.devices import environment

    print(f"{environment()['processor']}, one thread; microseconds a product, median of the rounds: dense, csr\n")
    print("| layer | density % | " + " | ".join(f"batch {batch}" for batch in options.batches) + " |")
    print("|---|---|" + "---|" * len(options.batches))
    rng = np.random.default_rng(0)
    for inputs, outputs in LAYERS:
        for density in DENSITIES:
            dense = rng.choice([-1, 1], (outputs, inputs)) * (rng.random((outputs, inputs)) < density)
            dense = dense.astype(np.float32)
            rows, cells = csr_array(dense), []
            for batch in options.batches:
                x = rng.normal(size=(inputs, batch)[: 1 if batch == 1 else 2]).astype(np.float32)
                ways = {"dense": dense.dot, "csr": rows.__matmul__}
                counts = {name: _calls(way, x) for name, way in ways.items()}
                ready = {name: (partial(_repeat, way, x, counts[name]), counts[name]) for name, way in ways.items()}
                times = by_turns(ready, options.rounds)
                cells.append(", ".join(f"{1e6 * times[name]['median']:,.1f}" for name in ways))
            print(f"| {inputs} x {outputs} | {100 * density:g} | " + " | ".join(cells) + " |", flush=True)


def _repeat(way, images, count: int, number: int) -> None:
    for _ in range(count):
        way(images)


def _repeat_in_c(way, images, count: int, number: int) -> None:
    way(images, count)


def _calls(way, images) -> int:
    """Return how many calls take about a fifth of a second."""
    import time

    start = time.perf_counter()
    way(images)
    return max(1, int(0.2 / max(time.perf_counter() - start, 1e-6)))


def natives_of(artifact, folder: Path) -> dict:
    """Return the net in C by how gcc compiled it, in this folder; none without gcc or of a net that C lacks."""
    from native import Native

    from ssm.errors import UserError
    from ssm.export.c_source import to_c

    try:
        source = to_c(artifact)
    except UserError as error:
        print(error, file=sys.stderr)
        return {}
    if shutil.which("gcc") is None:
        return {}
    found = {}
    for options in ("-Os", "-O3", "-O3 -march=native"):
        own = folder / options.replace(" ", "")
        own.mkdir()
        found[f"C, {options}"] = Native(source, own, tuple(options.split()), classes=artifact.known().classes)
    return found


def ways_of(artifact) -> dict:
    """Return functions from standardised images to logits, by name; those whose package is missing are left out."""
    import jax
    import numpy as np
    from scipy.sparse import csr_array

    from ssm.export import runtime
    from ssm.export.interop import to_onnx
    from ssm.export.runtime import Runtime, elu
    from ssm.models.graph import graph

    net = artifact.architecture
    dense = artifact.to_dense()

    def plain(images):
        x = images.reshape(len(images), -1)
        *hidden, last = dense.values()
        for kernel in hidden:
            x = elu(x @ kernel)
        return x @ last

    rows = [csr_array(np.ascontiguousarray(kernel.reshape(-1, kernel.shape[-1]).T)) for kernel in dense.values()]

    def sparse(images):
        x = np.ascontiguousarray(images.reshape(len(images), -1).T)
        x = x[:, 0] if len(images) == 1 else x
        for kernel in rows[:-1]:
            x = elu(kernel @ x)
        return (rows[-1] @ x).T.reshape(len(images), -1)

    def whole():
        """Return the runtime of all units, every layer dense."""
        before = runtime.SPARSE_BELOW, runtime.SPARSE_BATCH_BELOW
        runtime.SPARSE_BELOW = runtime.SPARSE_BATCH_BELOW = 0.0
        try:
            return Runtime(graph(net), dense, artifact.norms(), inputs=net.inputs)
        finally:
            runtime.SPARSE_BELOW, runtime.SPARSE_BATCH_BELOW = before

    own, variables = artifact.module, artifact.variables
    compiled = jax.jit(lambda images: own.apply(variables, images))
    ways = {
        "NumPy, dense": plain if net.model == "fcn" else whole(),
        **({"SciPy, csr of all layers": sparse} if net.model == "fcn" else {}),
        "ssm.export.runtime": artifact.runtime(),
        "JAX, compiled": lambda images: np.asarray(compiled(images)),
    }
    try:
        import onnxruntime
    except ImportError:
        return ways
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    for name, compacted in (("onnxruntime, dense", False), ("onnxruntime, compacted", True)):
        model = to_onnx(artifact, compacted=compacted, standardizes=False)
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        ways[name] = lambda images, session=session: session.run(["logits"], {"images": images})[0]
    return ways


if __name__ == "__main__":
    alone()
    from ssm.runs.program import run_program

    run_program(main, Options)
