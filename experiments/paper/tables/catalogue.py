"""All tables by name."""

from collections.abc import Mapping, Sequence
from typing import Any

from paper.tables import settings
from paper.tables.literature import literature
from paper.tables.masks import first_masks
from paper.tables.nets import architectures
from paper.tables.printed import Record
from paper.tables.results import RESULTS, every_run, results
from paper.tables.table import Table
from ssm.errors import UserError

TABLES = (*RESULTS, "masks", "literature", "architectures", *settings.NAMES, "sinn", "runs")
"""The tables of the paper, and `runs`, a table of all runs."""


def make(names: Sequence[str], runs: Mapping[str, Mapping[str, Any]], paper: Record) -> list[Table]:
    """Return tables by name, of runs (`find_runs`) and the paper's numbers (`read_printed`).

    Raises:
        UserError: for an unknown name, or a damaged file of a run.
    """
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        raise UserError(f"--tables={','.join(unknown)} is not known; choose from: {', '.join(TABLES)}.")
    return [_table(name, runs, paper) for name in dict.fromkeys(names)]


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
