"""Prints the sizes of finished runs' nets in every form: `python experiments/sizes.py [RUN_OR_FOLDER ...]`."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from paper.tables import cells, with_config
from ssm.analysis import sizes, total
from ssm.errors import UserError
from ssm.export.serialization import to_bytes
from ssm.runs.program import run_program
from ssm.runs.reader import FinishedRun, find_finished

HERE = Path(__file__).resolve().parent
HEAD = ("run", "seeds", "accuracy %", "weights", "remaining %", "dense", "csr", "two bits", "order-0 entropy", "file")
HEAD += ("dense / file", "file less entropy", "dense weights, compacted")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Print a Markdown table of sizes, each the mean over the run's seeds whose masks are kept."""

    folders: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Runs, or folders of runs. Default: experiments/results."""
    seeds: int | None = None
    """How many of each run's seeds (default: all whose masks are kept)."""


def main(options: Options) -> None:
    """Print the table.

    Raises:
        UserError: for folders without a run, without a run that keeps masks, or if all are damaged.
    """
    found = find_finished(options.folders or (HERE / "results",))
    masked = [run for run in found if run.has_masks]
    if not masked:
        raise UserError("none of these runs keeps masks: name the folders that the runs were written to")
    if options.seeds is not None and options.seeds < 1:
        raise UserError(f"--seeds={options.seeds}: give 1 or more")
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    without = [f"{run.name}: no masks in its folder" for run in found if not run.has_masks and run.is_masked]
    damaged = 0
    for run in masked:
        try:
            print("| " + " | ".join(_row(run, run.mask_seeds[: options.seeds])) + " |", flush=True)
        except UserError as error:
            without.append(str(error))
            damaged += 1
    if damaged == len(masked):
        raise UserError(without[-1])
    if without:
        print("\nLeft out:\n")
        print("\n".join(f"- {line}" for line in without))


def _row(run: FinishedRun, seeds: list[int]) -> list[str]:
    from ssm.export.conversion import from_run  # draws frozen weights again, for which JAX takes seconds to import

    artifacts = [from_run(run, seed) for seed in seeds]
    forms = [total(map(sizes, artifact.to_numpy().values())) for artifact in artifacts]
    dense, csr, two_bit, entropy = (float(np.mean(column)) for column in zip(*forms, strict=True))
    values = 4 * float(np.mean([artifact.own_values for artifact in artifacts]))  # which no two bits say
    two_bit, entropy = two_bit + values, entropy + values
    file = float(np.mean([len(to_bytes(artifact)) for artifact in artifacts]))
    remaining = float(np.mean([artifact.remaining / artifact.weights for artifact in artifacts]))
    accuracy = float(np.mean([run.summary["test_accuracy"]["values"][str(seed)] for seed in seeds]))
    left = np.mean([artifact.compact().size for artifact in artifacts])
    named = with_config(run.summary, run.config)
    name = " ".join([*cells.net(named), str(run.setting("dataset")), cells.preset(named)])
    bytes_ = [f"{count:,.0f}" for count in (dense, csr, two_bit, entropy, file)]
    percents = [cells.rounded(100 * share, 2) for share in (accuracy, remaining)]
    row = [name, str(len(seeds)), percents[0], f"{artifacts[0].weights:,}", percents[1]]
    return [*row, *bytes_, f"{dense / file:.0f}", f"{file - entropy:+,.0f}", f"{left:,.0f}"]


if __name__ == "__main__":
    run_program(main, Options)
