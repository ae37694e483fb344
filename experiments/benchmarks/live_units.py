"""What leaving out dead hidden units saves over a whole run, and whether anything else changes; on an idle machine.

    python experiments/benchmarks/live_units.py --data-dir=DIR --seeds=10 --out=OUT

Each way is a run of train.py in a process of its own, in OUT/WAY; one that is there already is compared, not timed.
"vmap" trains all units, its seeds vectorised: it differs from "off" by rounding alone, too.

    python experiments/benchmarks/live_units.py --data-dir=DIR --out=OUT --rounds=5

times the FCN's epoch in each size of its first hidden layer, by turns, which a machine whose speed drifts slows alike,
and says what the epochs of OUT/on come to in all.
"""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ssm.errors import UserError
from ssm.runs.program import run_program

TRAIN = Path(__file__).resolve().parents[1] / "train.py"
WAYS = {"on": ("--live-units=on",), "off": ("--live-units=off",), "vmap": ("--live-units=off", "--seed-loop=vmap")}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Compare whole runs of the two ways."""

    ways: str = "off,on"
    """Of off, on and vmap, with commas between; the first is what the others are compared with."""
    seeds: int = 10
    """Seeds of each run."""
    options: str = "--model=fcn --dataset=mnist"
    """Options of train.py."""
    data_dir: Path | None = None
    """Folder of the data set (default: where train.py looks)."""
    out: Path = Path("live-units")
    """Folder of the runs."""
    rounds: int = 0
    """Time single epochs of the FCN instead, so often each; OUT/on must hold a run of it."""


def main(options: Options) -> None:
    from ssm.runs.reader import read_finished
    from ssm.training import devices

    if options.rounds:
        time_sizes(options)
        return
    names = options.ways.split(",")
    if unknown := [name for name in names if name not in WAYS]:
        raise UserError(f"--ways={options.ways}: {unknown[0]!r} is none of {', '.join(WAYS)}")
    seconds = {name: trained(name, options) for name in names}
    devices.use_host_devices()
    where = devices.environment()
    print(f"{where['processor']}, JAX {where['jax']}, {where['devices']} devices")
    print(f"{options.options}, {options.seeds} seeds")
    runs = {}
    for name in names:
        (folder,) = (options.out / name).glob("*/summary.json")
        runs[name] = read_finished(folder.parent)
        figures = ", ".join(
            f"{text} {100 * runs[name].summary[key]['mean']:.3f} %"
            for key, text in (("test_accuracy", "accuracy"), ("remaining_weights", "remaining weights"))
        )
        print(f"{name}: {f'{seconds[name]:.1f} s, ' if seconds[name] else ''}{figures}")
    first, *others = names
    for name in others:
        print(f"{name} beside {first}: {beside(runs[first], runs[name])}")
        before, after = seconds[first], seconds[name]
        if before is not None and after is not None:
            print(f"{first} over {name}, whole commands: {before / after:.3f}")


def time_sizes(options: Options) -> None:
    """Print the seconds of an epoch and seed by the size of the FCN's first hidden layer, two seeds on two devices."""
    import jax
    from turns import by_turns, epochs_of

    from ssm import data
    from ssm.models.description import HIDDEN
    from ssm.recipes.build import trainer
    from ssm.recipes.config import resolve
    from ssm.runs.history import read_history
    from ssm.training import devices
    from ssm.training.live import ladder

    units, *others = HIDDEN["fcn"]
    found = list((options.out / "on").glob("fcn-*/history.csv"))
    if len(found) != 1:
        raise UserError(f"{options.out / 'on'} holds no run of the FCN: run this without --rounds first, --ways=on,off")
    counts = [int(row["trained_units"]) - sum(others) for row in read_history(found[0])]
    if not set(counts) <= {units, *ladder(units)}:
        raise UserError(f"{found[0]}: another layer than the first one shrank, too")
    devices.use_host_devices()
    where = devices.environment()
    print(f"{where['processor']}, JAX {where['jax']}, {where['devices']} devices")
    dataset = data.load("mnist", data_dir=options.data_dir)
    named = {"model": "fcn", "method": "signed", "preset": "default", "dataset": "mnist"}
    config = resolve(**named, samples=len(dataset.train_labels), overrides={})
    ready, seeds = trainer(config, dataset), len(jax.devices())

    def epochs(size: int):
        sizes = (("Dense_0", size),) if size < units else ()
        own = ready._replace(program=ready.program._replace(epoch=ready.program.epoch_of(sizes)))
        return epochs_of(own, config, seeds), seeds

    times = by_turns({str(size): epochs(size) for size in sorted(set(counts), reverse=True)}, options.rounds)
    for size, seconds in times.items():
        print(f"{size} units: minimum {seconds['minimum']:.3f}  median {seconds['median']:.3f} s per epoch and seed")
    whole, fewer = len(counts) * times[str(units)]["median"], sum(times[str(size)]["median"] for size in counts)
    name = found[0].parent.name
    print(f"all {len(counts)} epochs of {name}: {whole:.1f} s with all units, {fewer:.1f} s: {whole / fewer:.3f}")


def trained(name: str, options: Options) -> float | None:
    """Return the seconds of a way's command, None if it had nothing to train."""
    where = [f"--data-dir={options.data_dir}"] if options.data_dir else []
    wanted = [f"--out={options.out / name}", f"--seeds={options.seeds}", *where]
    fresh = not list((options.out / name).glob("*/summary.json"))
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, TRAIN, *options.options.split(), *WAYS[name], *wanted], check=True, stdout=sys.stderr
    )
    return time.perf_counter() - start if fresh else None


def beside(one, other) -> str:
    """Return in words how alike two runs of the same seeds are: p of Welch's tests, and the share of equal masks."""
    import numpy as np

    from ssm.analysis.statistics import compare

    found = compare(one, other)
    seeds = [seed for seed in one.mask_seeds if seed in other.mask_seeds]
    mine, theirs = one.masks(seeds), other.masks(seeds)
    equal = [
        np.concatenate([(mask[place] == theirs[name][place]).ravel() for name, mask in mine.items()]).mean()
        for place in range(len(seeds))
    ]
    text = f"p of equal means: accuracy {shown(found.accuracy)}, remaining weights {shown(found.remaining)}"
    return (
        f"{text}; equal mask elements of a seed: {100 * min(equal):.2f} to {100 * max(equal):.2f} %" if equal else text
    )


def shown(p: float | None) -> str:
    """Return a p value in three digits."""
    return "undefined" if p is None else f"{p:.3f}"


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
