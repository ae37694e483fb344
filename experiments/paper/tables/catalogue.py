"""All tables by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paper.tables import settings
from paper.tables.literature import literature
from paper.tables.masks import first_masks
from paper.tables.nets import architectures
from paper.tables.printed import Record
from paper.tables.results import RESULTS, every_run, results
from paper.tables.table import Table
from ssm.errors import UserError
from ssm.runs.reader import without_damaged

TABLES = (*RESULTS, "masks", "literature", "architectures", *settings.NAMES, "sinn", "runs")
"""The tables of the paper, and `runs`, a table of all runs."""


def make(names: Sequence[str], runs: Mapping[str, Mapping[str, Any]], paper: Record) -> list[Table]:
    """Return tables by name, of runs (`find_runs`) and the paper's numbers (`read_printed`).

    A run with a damaged file that a table needs is left out of it, with a warning, unless there is no other run.

    Raises:
        UserError: for an unknown name.
        DamagedRun: if all runs are damaged.
    """
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        raise UserError(f"--tables={','.join(unknown)} is not known; choose from: {', '.join(TABLES)}.")
    by_folder = {run["finished"].folder if "finished" in run else Path(name): (name, run) for name, run in runs.items()}
    return [
        without_damaged(by_folder, lambda left, name=name: _table(name, dict(left.values()), paper))
        for name in dict.fromkeys(names)
    ]


def _table(name: str, runs: Mapping[str, Mapping[str, Any]], paper: Record) -> Table:
    if name in RESULTS:
        return results(name, runs, paper)
    if name in settings.NAMES:
        return settings.settings(name, paper)
    match name:
        case "masks":
            return first_masks(runs)
        case "literature":
            return literature(runs, paper)
        case "architectures":
            return architectures(paper)
        case "sinn":
            return settings.sinn(paper)
        case _:
            return every_run(runs, paper["rows"])
