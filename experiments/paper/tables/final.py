"""The lines that a run prints at its end."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paper.tables import cells
from paper.tables.compare import compare, other_recipe
from paper.tables.figures import ACCURACY, FIGURES, REMAINING
from paper.tables.printed import Record, dataset, paper_row


class Final(NamedTuple):
    """A run beside the paper's row: a head, rows of cells, and notes."""

    head: list[str]
    rows: list[list[str]]
    notes: list[str]


def final(summary: Mapping[str, Any], paper_rows: Sequence[Record]) -> Final:
    """Return a run's figures and the paper's row beside them; `summary` as `paper.tables.with_config` returns it."""
    record, row = compare(summary, paper_rows), paper_row(summary, paper_rows)
    paper = "paper" if row is None else f"paper ({row.get('runs', '?')} runs, {row.get('dataset', '?')})"
    rows, notes = [], []
    for figure, label in ((ACCURACY, "test accuracy %"), (REMAINING, "remaining weights %")):
        ours, theirs = cells.interval(record, figure), cells.interval(record, figure, paper=True)
        rows.append([label, ours, theirs, cells.difference(record, figure), cells.p(record, figure)])
    rows.append(["s / epoch / seed", cells.seconds(record["seconds"]), cells.seconds(record["paper_seconds"]), "", ""])
    if any(record[f"{figure.name}_p"] is not None for figure in FIGURES):
        notes.append("p: Welch's t-test; the paper's spread is an estimate from its printed, rounded quantiles.")
    if row is None:
        notes.append("The paper has no row for this configuration.")
    elif row.get("dataset") != dataset(summary):
        notes.append(f"The paper's row is about {row.get('dataset')}: its figures are not comparable to these.")
    elif other := other_recipe(summary, record):
        notes.append(f"No p: the run differs from the recipe in {', '.join(other)}.")
    for entry in summary["failed"]:
        reason = entry.get("reason") or "it turned non-finite"
        notes.append(f"Seed {entry['seed']} was excluded in epoch {entry['epoch']}: {reason}.")
    return Final(["", "mean [5 %, 95 %]", paper, "difference", "p"], rows, notes)


def final_table(summary: Mapping[str, Any], paper_rows: Sequence[Record]) -> str:
    """Return the lines that a run prints at its end: its figures beside the paper's row."""
    record, found = compare(summary, paper_rows), final(summary, paper_rows)
    weights = "" if summary["weights"] is None else f", {summary['weights']:,} weights"
    first = (
        f"{' '.join(cells.net(record))}, preset {record['preset']}, "
        f"{record['dataset']}{weights}: {record['runs']} seeds, {record['epochs']} epochs"
    )
    return "\n".join([first, *cells.aligned([found.head, *found.rows]), *found.notes]) + "\n"
