"""Train a seed of a finished run again, and compare: `python experiments/reproduce.py RUN --seed 0`."""

import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from recorded import recorded
from ssm.errors import UserError
from ssm.runs.names import run_folder
from ssm.runs.program import run_program
from ssm.runs.reader import FinishedRun, read_finished
from ssm.runs.reproduction import (
    Comparison,
    check_seed,
    compare,
    environment_differences,
    environment_of,
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Train a seed of a finished run again from the run's configuration, and say whether it comes out the same."""

    run: tyro.conf.Positional[Path]
    """The run's folder: one of experiments/results, or one of your own."""
    seed: int = 0
    """The seed to train."""
    data_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder with the data set's files (default: as train.py finds them)."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder to keep the seed's results in (default: a temporary one)."""


def main(options: Options) -> None:
    """Train the seed and print the comparison.

    Raises:
        UserError: for a folder without a finished run, a seed without a result, other data, or a damaged file.
    """
    run = read_finished(options.run)
    check_seed(run, options.seed)
    then = environment_of(run, options.seed)
    config, _, job, loop = recorded(run, then, options.data_dir)
    from ssm.runs.run import RunOptions, run_job

    print(f"data: {job.source}", flush=True)
    if "data" not in then:
        print(f"warning: {run.name} does not record which data it was trained on", file=sys.stderr)
    with ExitStack() as stack:
        out = options.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ssm-reproduce-")))
        check_out(out, config, options.seed)
        started = time.monotonic()
        execution = RunOptions(loop=loop, log=lambda line: print(line, flush=True))
        again = read_finished(run_job(job, [options.seed], out=out, options=execution).folder)
        print(f"\nseed {options.seed} of {run.name}, trained again in {time.monotonic() - started:.0f} s")
        print("\n".join(report(run, again, options.seed)))
    if options.out:
        print(f"results: {again.folder}")


def check_out(out: Path, config: Any, seed: int) -> None:
    """Raise UserError if the seed is finished under `out` already, in the run itself, say: it would not be trained."""
    folder = run_folder(out, config.as_dict())
    if (folder / "summary.json").exists():
        found = read_finished(folder)
        if seed in (*found.seeds, *(entry["seed"] for entry in found.summary["failed"])):
            raise UserError(f"{folder} has seed {seed} already; choose another --out")


def report(then: FinishedRun, now: FinishedRun, seed: int) -> list[str]:
    """Return what came out, and what differs in program and machine, as lines of text."""
    excluded = [entry for entry in now.summary["failed"] if entry["seed"] == seed]
    if excluded:
        lines = [
            f"different: the seed was excluded this time, in epoch {excluded[0]['epoch']}: {excluded[0]['reason']}"
        ]
    else:
        lines = outcome(compare(then, now, seed), baseline=not then.is_masked)
    recorded = environment_of(then, seed)
    if not recorded:
        return [*lines, "program and machine: not recorded then"]
    different = environment_differences(recorded, environment_of(now, seed))
    if not different:
        return [*lines, "program and machine: the same"]
    return [*lines, "program and machine:", *(f"  {line}" for line in different)]


def outcome(found: Comparison, *, baseline: bool) -> list[str]:
    """Return a comparison as lines of text."""
    compared = ["test accuracy and remaining weights"]
    lines = []
    if found.masks is None:
        lines.append(
            "masks: not compared, " + ("a baseline has none" if baseline else "the run keeps none of this seed")
        )
    else:
        compared.append("masks")
        if any(layer.count for layer in found.masks.values()):
            lines += ["masks:", *mask_lines(found)]
    for name, same in (("scales, offsets and batch statistics", found.values), ("weights", found.weights)):
        if same is not None:
            compared.append(name)
            lines += [] if same else [f"{name} differ"]
    if found.epochs:
        compared.append("the figures of all epochs")
    if found.epoch is not None:
        lines.append(f"figures differ from epoch {found.epoch} on")
    figures = [("test accuracy", found.accuracy), ("remaining weights", found.remaining)]
    lines += [f"{name}: {pair(*values)}" for name, values in figures]
    return [f"the same bits: {', '.join(compared)}" if found.same else "different", *lines]


def mask_lines(found: Comparison) -> list[str]:
    """Return the share of each layer's mask that differs, and of all layers together."""
    layers = found.masks or {}
    total = tuple(map(sum, zip(*layers.values(), strict=True)))
    width = max(map(len, (*layers, "all")))
    return [
        f"  {name:{width}}  {count:,} of {size:,} differ ({count / size:.4%})"
        for name, (count, size) in (*layers.items(), ("all", total))
    ]


def pair(then: float, now: float) -> str:
    """Return two shares in per cent, and their difference if there is one."""
    if then == now:
        return f"{then:.4%}"
    return f"{then:.4%} then, {now:.4%} now ({100 * (now - then):+.4f} points)"


if __name__ == "__main__":
    run_program(main, Options, trains=True)
