"""Runs beside the paper's rows: the same figures, their difference, and whether chance alone explains it."""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ssm.errors import UserError
from ssm.files import read_json
from ssm.results import read_summary
from ssm.statistics import std_from_quantiles, welch_from_summary

Record = dict[str, Any]

# Our names for what the paper's rows call otherwise.
_METHODS = {"signed": "signed_supermask", "binary": "binary_supermask"}
_SHORT = {long: short for short, long in _METHODS.items()}
# What decides which of the paper's rows a run is about, beside model, method and init; where a row, or a run made
# before there was the option, doesn't say, it is this.
_USUAL: Record = {"width": 1.0, "batch_norm": "none", "projections": 1, "score_scale": "xavier"}
# Other data sets beside which a row is shown all the same, never compared.
_STAND_INS = {"mnist5k": "mnist"}
# Recipes of their own, for which the paper prints no row.
_WITHOUT_ROW = ("sinn1", "sinn2")
_FIGURES = {
    "accuracy": ("test_accuracy", "test_accuracy_percent"),
    "remaining": ("remaining_weights", "remaining_weights_percent"),
}

NOTE = """\
mean [5 %, 95 % quantile]; seconds are the median per epoch and seed (the paper's: its authors' single GPU).
p: Welch's t-test. The paper's standard deviation is an estimate from its printed (rounded) quantiles, as if
normal, so p is one too; it is left out where the paper prints no quantiles, or the data sets differ."""


def read_paper(path: str | os.PathLike[str]) -> list[Record]:
    """Read the rows of paper.json.

    Raises:
        UserError: naming the file, if it is missing or damaged.
    """
    paper = read_json(path)
    try:
        rows = paper["rows"]
        _ = [(row["table"], row["model"], row["method"], row["init"], row["test_accuracy_percent"]) for row in rows]
    except (KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: not the paper's rows ({error!r})") from error
    return rows


def with_config(summary: Mapping[str, Any], config: Mapping[str, Any]) -> Record:
    """Return a run's summary with those values of its configuration that decide which of the paper's rows is its."""
    return {**summary, **{name: config.get(name, usual) for name, usual in _USUAL.items()}}


def paper_row(summary: Mapping[str, Any], rows: Sequence[Record]) -> Record | None:
    """Return the first of the paper's rows that a run, see `with_config`, is about, or None.

    It has the run's model, width, projection blocks, batch normalisation, method, and scales of weights and scores, and
    its data set, or that for which the run's stands in: then the figures are not comparable.
    """
    if summary["preset"] in _WITHOUT_ROW:
        return None
    data = _dataset(summary)
    wanted = _identity({**summary, "method": _METHODS.get(summary["method"], summary["method"])})
    wanted["dataset"] = _STAND_INS.get(data, data)
    return next((row for row in rows if _identity(row) == wanted), None)


def _identity(row: Mapping[str, Any]) -> Record:
    usual = {name: row.get(name, usual) for name, usual in _USUAL.items()}
    return {**{name: row.get(name) for name in ("model", "method", "init", "dataset")}, **usual}


def _dataset(summary: Mapping[str, Any]) -> str:
    return summary["dataset"].removeprefix("tfds:")


def find_runs(folders: Sequence[Path]) -> dict[str, Record]:
    """Read the summaries in folders that are runs or hold some, by name; of two with one name, the larger.

    A folder inside one of these that has no finished seed yet is passed over.

    Raises:
        UserError: naming a folder that is missing, unreadable or without finished seeds, or a damaged file.
    """
    runs: dict[str, Record] = {}
    for folder in folders:
        try:
            inside = [folder] if (folder / "summary.json").exists() else sorted(folder.iterdir())
            found = [path for path in inside if (path / "summary.json").exists()]
        except OSError as error:
            raise UserError(f"{folder} cannot be read: {error.strerror or error}") from error
        if not found:
            raise UserError(f"{folder} holds no run with finished seeds: no summary.json in it, or one folder down")
        for path in found:
            summary = with_config(read_summary(path), _config(path / "config.json"))
            name = path.resolve().name
            if name not in runs or summary["runs"] > runs[name]["runs"]:
                runs[name] = summary
    return runs


def _config(path: Path) -> Record:
    config = read_json(path) if path.exists() else {}
    if not isinstance(config, dict):
        raise UserError(f"{path} is damaged: not a configuration")
    return config


def compare(summary: Mapping[str, Any], rows: Sequence[Record], *, name: str = "") -> Record:
    """Return a run and the paper's row as one flat record: shares in per cent, None for what is not known."""
    row = paper_row(summary, rows)
    record = _blank(
        model=summary["model"],
        method=summary["method"],
        init=summary["init"],
        preset=summary["preset"],
        dataset=summary["dataset"],
        epochs=summary["epochs"],
        runs=summary["runs"],
        failed=len(summary["failed"]),
        seconds=summary["seconds_per_epoch_and_seed"]["median"],
        run=name,
        **{key: summary.get(key, usual) for key, usual in _USUAL.items()},
    )
    for figure, (ours, _) in _FIGURES.items():
        for key in ("mean", "q05", "q95"):
            value = summary[ours][key]
            record[f"{figure}_{key}"] = None if value is None else 100 * value
    if row is not None:
        _put_paper(record, row)
        if row.get("dataset") == _dataset(summary):
            for figure, (ours, theirs) in _FIGURES.items():
                _put_difference(record, figure, summary[ours], row.get(theirs, {}), summary["runs"], row.get("runs"))
    return record


def records(runs: Mapping[str, Mapping[str, Any]], rows: Sequence[Record], *, models: Sequence[str] = ("fcn",)):
    """Return every run's record in the order of the paper's rows, then those the paper has no row for.

    The paper's rows about `models` that no run on the same data set answers are listed too, with runs None.
    """
    left = dict(runs)
    listed: list[Record] = []
    seen: list[Record] = []
    for row in rows:
        mine = {name: summary for name, summary in left.items() if paper_row(summary, rows) is row}
        same = [name for name, summary in mine.items() if _dataset(summary) == row.get("dataset")]
        # A row is printed in several places of the paper; the text's own asides are no rows of a table.
        key = _identity(row)
        first = key not in seen and not row["table"].startswith("sec:")
        seen.append(key)
        if row["model"] in models and first and not same:
            record = _blank(**(key | {"method": _SHORT.get(row["method"], row["method"])}))
            _put_paper(record, row)
            listed.append(record)
        listed += [
            compare(mine[name], rows, name=name) for name in [*same, *(name for name in mine if name not in same)]
        ]
        left = {name: summary for name, summary in left.items() if name not in mine}
    return listed + [compare(summary, rows, name=name) for name, summary in left.items()]


def to_csv(found: Sequence[Record]) -> str:
    """Return records as CSV, not rounded, empty for what is not known, such as `runs` of a row not run."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(_blank()), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return buffer.getvalue()


def to_markdown(found: Sequence[Record]) -> str:
    """Return records as a Markdown table, rounded for reading, with a note on what its columns mean."""
    head = ["model", "method", "init", "preset", "dataset", "epochs", "runs"]
    for figure in ("accuracy %", "remaining %"):
        head += [figure, "paper", "difference", "p"]
    head += ["s / epoch / seed", "paper", "run"]
    lines = [head, ["---"] * len(head)]
    for record in found:
        cells = [*_net(record), *(_text(record[key]) for key in ("preset", "dataset", "epochs"))]
        failed = f" (+{record['failed']} failed)" if record["failed"] else ""
        cells.append("not run" if record["runs"] is None else f"{record['runs']}{failed}")
        for figure in _FIGURES:
            cells += [
                _interval(record, figure),
                _interval(record, f"paper_{figure}"),
                *_difference(record, figure),
            ]
        cells += [_seconds(record["seconds"]), _seconds(record["paper_seconds"]), _text(record["run"])]
        lines.append(cells)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + f"\n\n{NOTE}\n"


def final_table(summary: Mapping[str, Any], paper_rows: Sequence[Record]) -> str:
    """Return what a run says when it ends: its figures and the paper's row beside them, in plain lines."""
    record = compare(summary, paper_rows)
    row = paper_row(summary, paper_rows)
    weights = "" if summary["weights"] is None else f", {summary['weights']:,} weights"
    lines = [
        f"{' '.join(_net(record))}, preset {record['preset']}, "
        f"{record['dataset']}{weights}: {record['runs']} seeds, {record['epochs']} epochs"
    ]
    paper = "paper" if row is None else f"paper ({row.get('runs', '?')} runs, {row.get('dataset', '?')})"
    cells = [["", "mean [5 %, 95 %]", paper, "difference", "p"]]
    for figure, label in (("accuracy", "test accuracy %"), ("remaining", "remaining weights %")):
        ours, theirs = _interval(record, figure), _interval(record, f"paper_{figure}")
        cells.append([label, ours, theirs, *_difference(record, figure)])
    cells.append(["s / epoch / seed", _seconds(record["seconds"]), _seconds(record["paper_seconds"]), "", ""])
    lines += aligned(cells)
    if any(record[f"{figure}_p"] is not None for figure in _FIGURES):
        lines.append("p: Welch's t-test; the paper's spread is an estimate from its printed quantiles.")
    if row is None:
        lines.append("The paper has no row for this configuration.")
    elif row.get("dataset") != _dataset(summary):
        lines.append(f"The paper's row is about {row.get('dataset')}: its figures are not comparable to these.")
    for entry in summary["failed"]:
        reason = entry.get("reason") or "it turned non-finite"
        lines.append(f"Seed {entry['seed']} was set aside in epoch {entry['epoch']} and is left out: {reason}.")
    return "\n".join(lines) + "\n"


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines of text, each column as wide as its widest cell."""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def _blank(**known: Any) -> Record:
    keys = ["model", "method", "init", "preset", "dataset", "epochs", "runs", "failed"]
    for figure in _FIGURES:
        keys += [f"{side}{figure}_{key}" for side in ("", "paper_") for key in ("mean", "q05", "q95")]
        keys += [f"{figure}_difference", f"{figure}_p"]
    return dict.fromkeys([*keys, "seconds", "paper_seconds", "run", *_USUAL]) | known


def _put_paper(record: Record, row: Record) -> None:
    for figure, (_, theirs) in _FIGURES.items():
        for key in ("mean", "q05", "q95"):
            record[f"paper_{figure}_{key}"] = row.get(theirs, {}).get(key)
    record["paper_seconds"] = row.get("seconds_per_epoch", {}).get("mean")


def _put_difference(
    record: Record,
    figure: str,
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    runs: int,
    paper_runs: int | None,
) -> None:
    if ours["mean"] is None or "mean" not in theirs:
        return
    record[f"{figure}_difference"] = 100 * ours["mean"] - theirs["mean"]
    if ours["std"] is None or paper_runs is None or "q05" not in theirs or "q95" not in theirs:
        return
    spread = std_from_quantiles(theirs["q05"], theirs["q95"])
    mean, std = 100 * ours["mean"], 100 * ours["std"]
    record[f"{figure}_p"] = welch_from_summary(mean, std, runs, theirs["mean"], spread, paper_runs)


def _net(record: Record) -> list[str]:
    """Return model, method and init for reading, with what is unusual about each."""
    model, method, init = record["model"], record["method"], record["init"]
    if record["width"] != 1:
        model += f" x{record['width']:g}"
    if record["projections"] != 1:
        model += f" ({record['projections']} projections)"
    if record["batch_norm"] not in ("none", "affine" if method == "baseline" else "frozen"):
        method += " + BN" if record["batch_norm"] == "affine" else f" + {record['batch_norm']} BN"
    if record["score_scale"] != "xavier":
        init += f"/{record['score_scale']}"
    return [model, method, init]


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _interval(record: Record, figure: str) -> str:
    mean, q05, q95 = (record[f"{figure}_{key}"] for key in ("mean", "q05", "q95"))
    if mean is None:
        return ""
    return f"{mean:.2f}" if q05 is None or q95 is None else f"{mean:.2f} [{q05:.2f}, {q95:.2f}]"


def _difference(record: Record, figure: str) -> list[str]:
    difference, p = record[f"{figure}_difference"], record[f"{figure}_p"]
    return [
        "" if difference is None else f"{difference:+.2f}",
        "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}",
    ]
