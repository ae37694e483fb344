"""Every seed's course in long format: a CSV file with one row per seed and epoch."""

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ssm.runs.statistics import interval
from ssm.errors import UserError
from ssm.files import write_atomic

CURVE = ("test_accuracy", "remaining_weights", "train_loss", "test_loss", "flips")
"""The columns of the history that `curve` sums up over the seeds."""
UNITS = ("live_units", "trained_units")
"""Columns of nets whose dead units are left out of training, and ends of the names of those by layer."""

Row = dict[str, int | float]


def read_history(path: str | os.PathLike[str]) -> list[Row]:
    """Read a history: one dict per seed and epoch, whole numbers as int, all others as float.

    Raises:
        UserError: naming the file (and line), if it is missing or damaged.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            columns = next(reader, [])
            if columns[:2] != ["seed", "epoch"]:
                raise UserError(f"{path} is damaged: its first line does not start with seed,epoch")
            rows: list[Row] = []
            for values in reader:
                try:
                    rows.append({key: _number(value) for key, value in zip(columns, values, strict=True)})
                except ValueError as error:
                    raise UserError(f"{path} is damaged: line {reader.line_num} ({error})") from error
            return rows
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} cannot be read: {error}") from error


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def write_history(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a history atomically, ordered by seed and epoch; those two columns come first.

    Raises:
        ValueError: if rows differ in their columns, or hold something other than numbers.
    """
    columns = ["seed", "epoch", *(key for key in (rows[0] if rows else ()) if key not in ("seed", "epoch"))]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in sorted(rows, key=lambda row: (int(row["seed"]), int(row["epoch"]))):
        if len(row) != len(columns) or not all(key in row for key in columns):
            raise ValueError(f"history rows differ in their columns: {sorted(set(columns) ^ set(row))}")
        texts = [str(row[key]) for key in columns]  # str of a numpy float32 is its shortest exact form
        for text in texts:
            _number(text)
        writer.writerow(texts)
    write_atomic(path, buffer.getvalue())


def with_same_columns(rows: Sequence[Row], others: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return rows of two versions or ways with the same columns: where one has no counts of units, they are NaN.

    Raises ValueError if they differ in any other column.
    """
    if not rows or not others:
        return list(rows), list(others)
    every = rows[0] | others[0]
    if any(not name.endswith(UNITS) for name in rows[0].keys() ^ others[0].keys()):
        raise ValueError(f"history rows differ in their columns: {sorted(rows[0].keys() ^ others[0].keys())}")
    filled = [[{name: row.get(name, math.nan) for name in every} for row in part] for part in (rows, others)]
    return filled[0], filled[1]


def curve(rows: Sequence[Mapping[str, Any]], *, failed: Sequence[int] = ()) -> list[Row]:
    """Return mean, 5 % and 95 % quantile over the seeds that did not fail, per epoch, of `CURVE`.

    Of `UNITS`, too, if every seed has them.
    """
    counted = [name for name in UNITS if rows and all(math.isfinite(row.get(name, math.nan)) for row in rows)]
    epochs: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["seed"] not in failed:
            epochs.setdefault(int(row["epoch"]), []).append(row)
    points = []
    for epoch, group in sorted(epochs.items()):
        point: Row = {"epoch": epoch, "seeds": len(group)}
        for column in (*CURVE, *counted):
            found = interval([row[column] for row in group])
            point |= {f"{column}:mean": found.mean, f"{column}:q05": found.q05, f"{column}:q95": found.q95}
        points.append(point)
    return points
