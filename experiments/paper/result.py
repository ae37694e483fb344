"""A run's figures beside the paper's row, as a table of its page."""

from collections.abc import Mapping, Sequence
from typing import Any

from paper.tables.final import final
from ssm.viz.sections import Table


def result_table(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a run's figures beside the paper's row; `summary` as `paper.tables.with_config` returns it."""
    found = final(summary, [dict(row) for row in rows])
    shown = [[*cells[:3], cells[3].replace("-", "−"), cells[4]] for cells in found.rows]  # noqa: RUF001
    notes = ["Seconds are the median, the paper's on its authors' single GPU.", *found.notes]
    return Table(found.head, shown, notes)
