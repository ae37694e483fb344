"""Other methods on CIFAR-10, as the paper prints them, and our signed Supermasks beside the paper's."""

from collections.abc import Mapping
from typing import Any

from paper.tables import cells
from paper.tables.compare import row_records
from paper.tables.printed import Record, select
from paper.tables.table import Column, Table, plain

# The table's rows of the paper's own nets, by the printed method and model.
_OWN: Mapping[tuple[str, str], Record] = {
    ("Signed Supermask", "Conv8"): {"model": "conv8", "method": "signed", "init": "elus"},
    ("Signed Supermask + BN", "ResNet-20"): {
        "model": "resnet20",
        "method": "signed",
        "init": "elus",
        "batch_norm": "affine",
    },
}


def literature(runs: Mapping[str, Mapping[str, Any]], paper: Record) -> Table:
    """Return the paper's table of other methods, with our runs of its own two rows."""
    records = []
    for printed in paper["literature_cifar10"]:
        record = {
            "method": printed["method"],
            "model": printed["model"],
            "handling": printed["weights"],
            "paper_accuracy_mean": printed["accuracy_percent"],
            "paper_weights": printed["initial_weights"],
            "paper_remaining_weights": printed["remaining_weights"],
            "status": "literature",
        }
        wanted = _OWN.get((printed["method"], printed["model"]))
        if wanted is None:
            records.append(record)
            continue
        records += [record | _ours(one) for one in row_records(runs, select(paper["rows"], [wanted]))]
    return Table(
        name="literature",
        title="CIFAR-10: the literature as the paper prints it, and our rows beside (tab:cif10_lit_performance)",
        columns=[
            plain("method", "method"),
            plain("model", "model"),
            plain("weights are", "handling"),
            plain("accuracy % (printed)", "paper_accuracy_mean"),
            Column("initial weights (printed)", lambda record: cells.millions(record["paper_weights"])),
            Column("remaining weights (printed)", lambda record: cells.millions(record["paper_remaining_weights"])),
            Column("runs", lambda record: cells.runs({"runs": None} | record)),
            Column("epochs", lambda record: cells.epochs({"epochs": None, "paper_epochs": None} | record)),
            Column("accuracy %", lambda record: _two(record.get("accuracy_mean"))),
            Column("difference", lambda record: _signed(record.get("accuracy_difference"))),
            Column("weights", lambda record: cells.millions(record.get("weights"))),
            Column("remaining weights", lambda record: cells.millions(record.get("remaining_weights"))),
            plain("run", "run"),
        ],
        records=records,
        notes=(
            "As the paper says, these methods are not directly comparable: they differ in what is trained, in the "
            "nets, and in batch normalisation and dropout.",
        ),
    )


def _ours(record: Record) -> Record:
    keys = ("status", "preset", "epochs", "paper_epochs", "runs", "failed", "weights", "run")
    keys += ("accuracy_mean", "accuracy_q05", "accuracy_q95", "accuracy_difference", "remaining_mean")
    share, weights = record["remaining_mean"], record["weights"]
    remaining = None if share is None or weights is None else share / 100 * weights
    return {key: record[key] for key in keys} | {"remaining_weights": remaining}


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"
