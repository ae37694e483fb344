"""A record's values as the text of a table's cells: rounded for reading, empty where there is no value."""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

from paper.tables.figures import Figure
from paper.tables.printed import OWN_ORDERS, Record, decimals, usual


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines of text, each column as wide as its widest cell."""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def rounded(value: float, digits: int, sign: str = "") -> str:
    """Return a number with so many decimals; halves are rounded away from 0, also where no double is exactly one."""
    exact = Decimal(f"{value:.9f}").quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{exact + 0:{sign}}"  # no -0.00


def text(value: object) -> str:
    """Return a value as text, unrounded."""
    return "" if value is None else str(value)


def net(record: Record) -> list[str]:
    """Return model, method and init, each with its unusual settings."""
    model, method, init = record["model"], record["method"], text(record["init"])
    if record["width"] not in (None, 1):
        model += f" x{record['width']:g}"
    if record["projections"] not in (None, 1):
        model += f" ({record['projections']} projections)"
    if record["batch_norm"] not in (None, "none", "affine" if method == "baseline" else "frozen"):
        method += " + BN" if record["batch_norm"] == "affine" else f" + {record['batch_norm']} BN"
    if record.get("activation") not in (None, "elu"):
        model += f" ({record['activation']})"
    if record.get("density"):
        method += f" to {100 * record['density']:g} %"
    if record.get("validation"):
        method += f", {record['validation']:,} held out"
    if record["score_scale"] not in (None, "xavier"):
        init += f"/{record['score_scale']}"
    if record["weight_distribution"] not in (None, usual(record["method"])["weight_distribution"]):
        init += f" ({record['weight_distribution'].replace('_', ' ')})"
    return [model, method, init]


def preset(record: Record) -> str:
    """Return the preset, and which of its settings but the epochs a run has others of."""
    names = record.get("changed") or ()
    changed = [name.replace("_", " ") for name in names if name not in ("epochs", OWN_ORDERS)]
    orders = ", an order for each seed" if OWN_ORDERS in names else ""
    return text(record["preset"]) + orders + (f", other {', '.join(changed)}" if changed else "")


def runs(record: Record) -> str:
    """Return the number of seeds in a row's mean, or why there is none."""
    if record["runs"] is None:
        return text(record["status"])
    return f"{record['runs']}" + (f" (+{record['failed']} failed)" if record["failed"] else "")


def epochs(record: Record) -> str:
    """Return the epochs of training, and the paper's where they differ."""
    ours, paper = record["epochs"], record["paper_epochs"]
    return text(ours) if ours is None or paper in (None, ours) else f"{ours} of {paper}"


def seconds(value: float | None) -> str:
    """Return a time with at least two digits."""
    return "" if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def paper_seconds(record: Record) -> str:
    """Return the paper's time, with its quantiles where they are printed."""
    low, high = record["paper_seconds_q05"], record["paper_seconds_q95"]
    return seconds(record["paper_seconds"]) + ("" if low is None else f" [{low:.2f}, {high:.2f}]")


def interval(record: Record, figure: Figure, *, paper: bool = False) -> str:
    """Return a figure's mean and quantiles, or why they are unknown."""
    name, digits = ("paper_" if paper else "") + figure.name, figure.digits
    mean, q05, q95 = (record[f"{name}_{key}"] for key in ("mean", "q05", "q95"))
    if mean is None:
        # The literature has other kinds of ranges, such as 11 - 93.
        return text(record.get(name if paper else f"{name}_why"))
    alone = record["runs"] == 1 and not paper  # a single seed has no spread
    if alone or q05 is None or q95 is None:
        return rounded(mean, digits)
    ends = decimals((q05, q95)) if paper else digits  # no digit that the paper lacks
    return f"{rounded(mean, digits)} [{rounded(q05, ends)}, {rounded(q95, ends)}]"


def difference(record: Record, figure: Figure) -> str:
    """Return ours minus the paper's."""
    value = record[f"{figure.name}_difference"]
    return "" if value is None else rounded(value, figure.digits, "+")


def p(record: Record, figure: Figure) -> str:
    """Return Welch's p; where the paper's rounding matters, from the least to the largest."""
    if record[f"{figure.name}_p"] is None:
        return ""
    ends = (record[f"{figure.name}_{end}"] for end in ("p_least", "p_most"))
    least, most = ("<0.001" if end < 0.001 else f"{end:.3f}" for end in ends)
    return least if least == most else f"{least} to {most}"


def count(value: float | None) -> str:
    """Return a number of weights."""
    return "" if value is None else f"{value:,.0f}"


def millions(value: float | str | None) -> str:
    """Return a number of weights in millions, as the paper writes it."""
    return text(value) if value is None or isinstance(value, str) else f"{value / 1e6:.3g} M"
