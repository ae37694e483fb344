"""Prints the runs as a table beside the paper's rows: `python experiments/table.py [RUN_OR_FOLDER ...]`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from ssm import tables
from ssm.program import run_program

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Options:
    """Print runs beside the paper's rows, and the paper's FCN rows that were not run."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """Runs, or folders of runs. Default: experiments/results, and runs/ if it is here."""
    format: Literal["markdown", "csv"] = "markdown"
    """Markdown is rounded for reading, CSV is not."""
    paper: Path = HERE / "paper.json"
    """The paper's printed numbers."""


def main(options: Options) -> None:
    """Print the table.

    Raises:
        UserError: for a folder or file that cannot be read.
    """
    rows = tables.read_paper(options.paper)
    # Only what the user names must hold runs: before the first, the defaults do not, and no row was run.
    defaults = [folder for folder in (HERE / "results", Path("runs")) if any(folder.glob("*/summary.json"))]
    found = tables.records(tables.find_runs(options.folders or defaults), rows)
    print(tables.to_csv(found) if options.format == "csv" else tables.to_markdown(found), end="")


if __name__ == "__main__":
    run_program(main, Options)
