"""Prints the paper's tables with our own runs: `python experiments/table.py [RUN_OR_FOLDER ...]`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from paper import tables
from ssm.runs.program import run_program

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Options:
    """Print the paper's tables, our numbers beside the paper's; rows without a run are listed as not run."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """Runs, or folders of runs. Default: experiments/results, and runs/ if it exists."""
    tables: str = ""
    """Which, by name: --tables=fcn,conv. Default: all of fcn, conv, conv-efficiency, resnet20, resnet-deep, resnet-bn,
    conv-losses, resnet-efficiency, masks, literature, architectures, settings-baseline,
    settings-baseline-resnet, settings-signed, settings-signed-resnet, sinn, and runs (all runs)."""
    format: Literal["markdown", "latex", "csv"] = "markdown"
    """Markdown and LaTeX (booktabs) are rounded for reading, CSV is not."""
    paper: Path = HERE / "paper" / "paper.json"
    """The paper's printed numbers."""


def main(options: Options) -> None:
    """Print the tables.

    Raises:
        UserError: for a folder or file that cannot be read, or an unknown table.
    """
    paper = tables.read_printed(options.paper)
    names = [name for name in options.tables.split(",") if name] or tables.TABLES
    # Only folders that the user names must hold runs: the defaults are empty before the first run.
    defaults = [folder for folder in (HERE / "results", Path("runs")) if any(folder.glob("*/summary.json"))]
    found = tables.make(names, tables.find_runs(options.folders or defaults), paper)
    print(tables.FORMATS[options.format](found), end="")


if __name__ == "__main__":
    run_program(main, Options)
