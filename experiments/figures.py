"""Draws the paper's figures from runs: `python experiments/figures.py RUN_OR_FOLDER ... --out DIR`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ssm.errors import UserError
from ssm.runs.program import run_program
from ssm.runs.reader import find_finished


@dataclass(frozen=True, kw_only=True)
class Options:
    """Draw every figure of the paper for which there are runs, as PNG and SVG, and print what the others need."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Runs, or folders of runs.  Of several runs of one kind, the one with the most seeds is drawn."""
    out: Path = Path("figures")
    """Folder to write the figures to."""
    only: tuple[str, ...] = ()
    """Names of the figures to draw, as in the paper: fcn_mask_l0, all_acc, ...  (default: all)"""
    data_dir: Path | None = None
    """Folder with the data set of the image beside the first mask (default: as for train.py, else the digits of
    mnist5k)."""


def main(options: Options) -> None:
    """Draw the figures, and print a line for each file written and each figure not drawn.

    Raises:
        UserError: for folders without runs, or an unknown figure.
        DamagedRun: if all runs are damaged.
    """
    if not options.folders:
        raise UserError("name at least one run, or folder of runs")
    if options.data_dir is not None and not options.data_dir.is_dir():
        raise UserError(f"--data-dir={options.data_dir}: no such folder")
    runs = find_finished(options.folders)

    from paper.figures.gallery import FIGURES, draw_all
    from paper.figures.selection import Shelf

    if unknown := [name for name in options.only if name not in FIGURES]:
        raise UserError(f"--only {' '.join(unknown)}: no such figure; they are {', '.join(FIGURES)}")
    try:
        for outcome in draw_all(Shelf(runs, data_dir=options.data_dir), options.out, names=options.only):
            print(outcome.text, flush=True)
    except OSError as error:
        raise UserError(f"{error.filename or options.out} cannot be written: {error.strerror or error}") from error


if __name__ == "__main__":
    run_program(main, Options)
