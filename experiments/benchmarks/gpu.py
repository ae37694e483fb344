"""What one GPU that is there for ten minutes can show: ceilings, the FCN's rows, and the conv nets, by a clock.

    python experiments/benchmarks/gpu.py --data-dir DATA --out results

In this order: the environment, and the rates of memory and matrix products; the FCN's ELUS row on MNIST; for each conv
net and ResNet20, seconds per seed and epoch for each way of running seeds, form of the convolutions and precision; the
masked beside the dense step; Conv2 and Conv4 on CIFAR-10, as many seeds as fit; the other rows of the FCN.

Every part is printed as it ends, and OUT/gpu.json is complete after each.  One that would not end before --minutes is
left out as a whole, and so is one whose data is missing; the same command again, on the same machine, keeps the
timings that are there and trains just what is missing.  Trained rows are ordinary runs in OUT/runs:
`experiments/table.py` and `experiments/publish.py` read them.  On a CPU, try it with --tiny.

DATA holds MNIST's files and CIFAR-10's (binary version), each there or in its usual subfolder.  Without all of CIFAR's
six the nets are timed on made images, and not trained.  Where a machine takes 64 MiB a call, CIFAR travels in three:
`xz` makes 22 MiB of each file, so two go with a call, and MNIST (11 MiB) with the last.  Each call but the last just
unpacks them outside the checkout, whose ignored files may not stay: `mkdir -p /tmp/DATA/cifar-10-batches-bin && for f
in carry/*.xz; do xz -dc $f > /tmp/DATA/cifar-10-batches-bin/$(basename $f .xz); done`; the last one goes on with this
script.  The next call must come while the machine is still held.  Where just a few files come back, pack them:
`tar czf results.tgz --exclude=masks results`.
"""

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ssm.errors import UserError
from ssm.runs.program import run_program

TINY_IMAGES = 1024


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure the FCN and the conv nets on this machine's accelerator (on a CPU, use --tiny)."""

    data_dir: Path | None = None
    """Folder of MNIST's and CIFAR-10's files (default: where train.py looks)."""
    out: Path = Path("gpu-results")
    """Folder for gpu.json and the runs."""
    minutes: float = 8.0
    """Time after which no further part is begun, nor one that would not end within it."""
    seeds: int | None = None
    """Seeds of every row of the FCN (default: 50, with --tiny 2)."""
    tiny: bool = False
    """A few images, narrow nets, small ceilings and a few ways and rows, to try the script on a CPU."""


def find(name: str, data_dir: Path | None):
    """Return a data set and None, or None and why it is not at hand."""
    from ssm import data

    try:
        # `auto` doesn't wait long for a download: the clock is running.
        dataset = data.load("auto", data_dir=data_dir, preferred=name)
    except data.DataError as error:
        return None, str(error)
    return (dataset, None) if dataset.name == name else (None, dataset.source)


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds if options.seeds is not None else 2 if options.tiny else 50
    if seeds < 1 or not options.minutes > 0:
        raise UserError("--seeds and --minutes must be above 0.")
    if options.data_dir is not None and not options.data_dir.is_dir():
        raise UserError(f"--data-dir={options.data_dir} is no folder; leave it out, or give one with data sets.")
    import gpu_nets
    import gpu_rows
    import jax
    from gpu_bench import Bench, ceilings, facts, first_images

    bench = Bench(options.out, minutes=options.minutes, seeds=seeds, tiny=options.tiny, started=started)
    # Rows that differ in numbers alone are one program: it is compiled once, and never before the clock runs.
    with tempfile.TemporaryDirectory() as cache:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        facts(bench)
        ceilings(bench)
        digits, why = find("mnist", options.data_dir)
        bench.put("data", "mnist", digits.source if digits else f"missing: {why}")
        if digits and options.tiny:
            digits = first_images(digits, TINY_IMAGES)
        gpu_rows.first(bench, digits)
        pictures, why = find("cifar10", options.data_dir)
        bench.put("data", "cifar10", pictures.source if pictures else f"missing: {why}")
        part = gpu_nets.a_tenth(bench, pictures)
        gpu_nets.ways(bench, part)
        gpu_nets.dense(bench, part)
        gpu_nets.training(bench, pictures)
        gpu_rows.rest(bench, digits)
    bench.put("total", "seconds", time.perf_counter() - started)
    if bench.failed:
        sys.exit(f"gpu.py: {bench.failed} part(s) failed; the others stand")


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
