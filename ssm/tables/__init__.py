"""The paper's tables, from one's own runs: ours beside the paper's, how they differ, and what was not run."""

from ssm.tables.catalogue import TABLES, make
from ssm.tables.cells import aligned
from ssm.tables.compare import compare, records, row_records
from ssm.tables.final import final_table
from ssm.tables.paper import paper_row, read_paper, read_printed, with_config
from ssm.tables.results import every_run
from ssm.tables.runs import find_runs
from ssm.tables.table import NOTE, Table
from ssm.tables.write import FORMATS

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
