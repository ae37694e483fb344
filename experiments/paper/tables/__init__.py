"""The paper's tables from our own runs: our numbers beside the paper's, their difference, and what was not run."""

from paper.tables.catalogue import TABLES, make
from paper.tables.cells import aligned
from paper.tables.compare import compare, records, row_records
from paper.tables.final import final_table
from paper.tables.printed import paper_row, read_paper, read_printed, with_config
from paper.tables.results import every_run
from paper.tables.runs import find_runs
from paper.tables.table import NOTE, Table
from paper.tables.write import FORMATS

__all__ = [
    "FORMATS",
    "NOTE",
    "TABLES",
    "Table",
    "aligned",
    "compare",
    "every_run",
    "final_table",
    "find_runs",
    "make",
    "paper_row",
    "read_paper",
    "read_printed",
    "records",
    "row_records",
    "with_config",
]
