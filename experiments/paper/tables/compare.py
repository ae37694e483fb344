"""Runs beside the paper's rows: the same figures, their difference, and whether chance alone explains it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paper.tables.figures import FIGURES, Figure, Found
from paper.tables.printed import OWN_ORDERS, SETTINGS, SHORT, Record, dataset, decimals, identity, paper_row
from ssm.analysis.statistics import std_from_quantiles, welch_from_summary
from ssm.errors import UserError
from ssm.recipes.presets import recipe

_KEYS = ("mean", "q05", "q95")


def compare(
    summary: Mapping[str, Any], rows: Sequence[Record], *, name: str = "", figures: Sequence[Figure] = FIGURES
) -> Record:
    """Return a run and the paper's row as one flat record: shares in per cent, None for unknown values."""
    row = paper_row(summary, rows)
    record = blank(
        figures,
        status="run",
        model=summary["model"],
        method=summary["method"],
        init=summary["init"],
        preset=summary["preset"],
        changed=summary.get("changed", []),
        dataset=summary["dataset"],
        epochs=summary["epochs"],
        runs=summary["runs"],
        failed=len(summary["failed"]),
        seconds=summary["seconds_per_epoch_and_seed"]["median"],
        weights=summary.get("weights"),
        run=name,
        **{key: value for key, value in identity(summary).items() if key in SETTINGS},
    )
    if row is not None:
        put_paper(record, row, figures)
    same = row is not None and row.get("dataset") == dataset(summary)
    for figure in figures:
        found = figure.find(summary)
        _put(record, figure, found)
        if row is not None and same:
            _put_difference(record, figure, found, row, other_recipe(summary, record))
    return record


def records(
    runs: Mapping[str, Mapping[str, Any]], rows: Sequence[Record], *, models: Sequence[str] = ("fcn",)
) -> list[Record]:
    """Return every run's record in the order of the paper's rows, then the runs without a row in the paper.

    The paper's rows about `models` without a run on the same data set are listed too, with runs None.
    """
    left = dict(runs)
    listed: list[Record] = []
    seen: list[Record] = []
    for row in rows:
        mine = {name: summary for name, summary in left.items() if paper_row(summary, rows) is row}
        same = [name for name, summary in mine.items() if dataset(summary) == row.get("dataset")]
        # The paper prints some rows several times; numbers in its text are not rows of a table.
        key = identity(row)
        first = key not in seen and not row["table"].startswith("sec:")
        seen.append(key)
        if row["model"] in models and first and not same:
            listed.append(not_run(row))
        listed += [
            compare(mine[name], rows, name=name) for name in [*same, *(name for name in mine if name not in same)]
        ]
        left = {name: summary for name, summary in left.items() if name not in mine}
    return listed + [compare(summary, rows, name=name) for name, summary in left.items()]


def row_records(
    runs: Mapping[str, Mapping[str, Any]], wanted: Iterable[Record], *, figures: Sequence[Figure] = FIGURES
) -> list[Record]:
    """Return the records of these rows of the paper, in order: every run of a row on its data set, or 'not run'.

    Runs of the preset `paper` come first in a row, those with settings of their own last of their preset.
    """
    listed = []
    for row in wanted:
        mine = [
            name
            for name, summary in runs.items()
            if paper_row(summary, (row,)) is row and dataset(summary) == row.get("dataset")
        ]
        mine.sort(key=lambda name: (runs[name]["preset"] != "paper", list(runs[name].get("changed", ()))))
        listed += [compare(runs[name], (row,), name=name, figures=figures) for name in mine] or [not_run(row, figures)]
    return listed


def not_run(row: Record, figures: Sequence[Figure] = FIGURES) -> Record:
    """Return the record of a row of the paper without a run: our numbers are None."""
    known = identity(row) | {"method": SHORT.get(row["method"], row["method"])}
    record = blank(figures, status="not run", **known)
    put_paper(record, row, figures)
    return record


def blank(figures: Sequence[Figure] = FIGURES, **known: Any) -> Record:
    """Return a record with only these values known."""
    keys = ["model", "method", "init", "preset", "dataset", "epochs", "runs", "failed"]
    for figure in figures:
        name = figure.name
        keys += [f"{side}{name}_{key}" for side in ("", "paper_") for key in _KEYS]
        keys += [f"{name}_{what}" for what in ("difference", "p", "p_least", "p_most", "overlap")]
        keys += [f"{name}_why"] if figure.lacks else []
    times = ["seconds", "paper_seconds", "paper_seconds_q05", "paper_seconds_q95"]
    counts = ["weights", "paper_remaining_weights", "paper_epochs"]
    return dict.fromkeys([*keys, *times, "run", *SETTINGS, *counts, "status"]) | known


def put_paper(record: Record, row: Record, figures: Sequence[Figure]) -> None:
    """Put the paper's own figures into a record."""
    for figure in figures:
        printed = row.get(figure.theirs, {})
        printed = printed if isinstance(printed, dict) else {"mean": printed}
        for key in _KEYS:
            record[f"paper_{figure.name}_{key}"] = printed.get(key)
    seconds = row.get("seconds_per_epoch", {})
    record["paper_seconds"] = seconds.get("mean")
    record["paper_seconds_q05"], record["paper_seconds_q95"] = seconds.get("q05"), seconds.get("q95")
    record["paper_remaining_weights"] = row.get("remaining_weights")
    try:
        record["paper_epochs"] = recipe(row["model"], record["method"], "paper", row["dataset"])["epochs"]
    except (KeyError, UserError):
        record["paper_epochs"] = None


def _put(record: Record, figure: Figure, found: Found) -> None:
    for key in _KEYS:
        value = None if found.statistics is None else found.statistics[key]
        record[f"{figure.name}_{key}"] = None if value is None else figure.factor * value
    if figure.lacks and found.statistics is None:
        record[f"{figure.name}_why"] = found.why


def other_recipe(summary: Mapping[str, Any], record: Record) -> list[str]:
    """Return in which settings a run differs from its preset's recipe, or only in epochs from the paper's.

    The paper does not say that its runs share an order of the data: runs with one each have its recipe.
    """
    changed = [name for name in summary.get("changed", ()) if name != OWN_ORDERS]
    return changed or ["epochs"] * (record["epochs"] != record["paper_epochs"])


def _put_difference(record: Record, figure: Figure, found: Found, row: Record, other: Sequence[str]) -> None:
    """Put difference, p and overlap into the record of a run on the data set of the paper's row.

    p is that of the printed numbers, and the least and the largest of all numbers that round to them.  There is no p
    and no overlap for a run of fewer epochs than the paper's, or one that differs from its preset's recipe.
    """
    name = figure.name
    ours, theirs = ([record[f"{side}{name}_{key}"] for key in _KEYS] for side in ("", "paper_"))
    if theirs[0] is None:
        return
    if ours[0] is not None:
        record[f"{name}_difference"] = ours[0] - theirs[0]
    if other:
        return
    rounding = 10.0**-figure.digits, 10.0 ** -decimals(theirs[1:])
    record[f"{name}_overlap"] = _overlap(ours, theirs, record["runs"], rounding[1])
    std, runs = found.statistics["std"] if found.statistics is not None else None, row.get("runs")
    if ours[0] is None or std is None or runs is None or None in theirs:
        return
    sample = ours[0], figure.factor * std, record["runs"]

    def p(closer: float, wider: float) -> float | None:
        """Return p where the means are closer, and the quantiles further apart, by shares of what rounding may hide."""
        distance = max(abs(ours[0] - theirs[0]) - closer * rounding[0] / 2, 0.0)
        low, high = theirs[1] - wider * rounding[1] / 2, theirs[2] + wider * rounding[1] / 2
        return welch_from_summary(*sample, ours[0] + distance, std_from_quantiles(low, max(low, high), runs), runs)

    # Where rounding leaves no spread on either side there is no test, and p goes to 0.  Of few seeds a wider spread of
    # the paper's may lower p, by more degrees of freedom.
    least, most = ([p(closer, wider) or 0.0 for wider in (-1, 0, 1)] for closer in (-1, 1))
    record[f"{name}_p"], record[f"{name}_p_least"], record[f"{name}_p_most"] = p(0, 0), min(least), max(most)


def _overlap(ours: Sequence[float | None], theirs: Sequence[float | None], runs: int, rounding: float) -> str:
    """Return whether two intervals (mean, q05, q95) have a point in common.

    One seed has no interval; `undetermined` is what the paper's rounding decides.
    """
    (_, low, high), (_, paper_low, paper_high) = ours, theirs
    if low is None or high is None or paper_low is None or paper_high is None or runs < 2:
        return "unknown"
    room = min(paper_high - low, high - paper_low)
    return "undetermined" if abs(room) <= rounding / 2 else "yes" if room > 0 else "no"
