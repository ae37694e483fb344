"""What a run says when it ends."""

from collections.abc import Mapping, Sequence
from typing import Any

from ssm.tables import cells
from ssm.tables.compare import compare
from ssm.tables.figures import ACCURACY, FIGURES, REMAINING
from ssm.tables.paper import Record, dataset, paper_row


def final_table(summary: Mapping[str, Any], paper_rows: Sequence[Record]) -> str:
    """Return what a run says when it ends: its figures and the paper's row beside them, in plain lines."""
    record = compare(summary, paper_rows)
    row = paper_row(summary, paper_rows)
    weights = "" if summary["weights"] is None else f", {summary['weights']:,} weights"
    lines = [
        f"{' '.join(cells.net(record))}, preset {record['preset']}, "
        f"{record['dataset']}{weights}: {record['runs']} seeds, {record['epochs']} epochs"
    ]
    paper = "paper" if row is None else f"paper ({row.get('runs', '?')} runs, {row.get('dataset', '?')})"
    found = [["", "mean [5 %, 95 %]", paper, "difference", "p"]]
    for figure, label in ((ACCURACY, "test accuracy %"), (REMAINING, "remaining weights %")):
        ours, theirs = cells.interval(record, figure), cells.interval(record, figure, paper=True)
        found.append([label, ours, theirs, cells.difference(record, figure), cells.p(record, figure)])
    found.append(["s / epoch / seed", cells.seconds(record["seconds"]), cells.seconds(record["paper_seconds"]), "", ""])
    lines += cells.aligned(found)
    if any(record[f"{figure.name}_p"] is not None for figure in FIGURES):
        lines.append("p: Welch's t-test; the paper's spread is an estimate from its printed quantiles.")
    if row is None:
        lines.append("The paper has no row for this configuration.")
    elif row.get("dataset") != dataset(summary):
        lines.append(f"The paper's row is about {row.get('dataset')}: its figures are not comparable to these.")
    for entry in summary["failed"]:
        reason = entry.get("reason") or "it turned non-finite"
        lines.append(f"Seed {entry['seed']} was set aside in epoch {entry['epoch']} and is left out: {reason}.")
    return "\n".join(lines) + "\n"
