"""The comparison's table, as Markdown and CSV, and its two figures."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.ticker import FixedLocator, NullLocator

from ssm.files import write_atomic

HEAD = (
    "method",
    "asked %",
    "density %",
    "accuracy %",
    "range",
    "difference",
    "p (Holm)",
    "weights are",
    "bits a weight",
    "bytes",
    "hidden by layer %",
    "dead layers",
    "s",
    "rate",
    "seeds",
)
COLOURS = {"frozen": "C0", "one a layer": "C1", "two a layer": "C2", "trained": "C3"}


def write(records: Sequence[Mapping[str, Any]], folder: Path, name: str) -> None:
    """Write NAME.md, NAME.csv, NAME-density.png and NAME-bytes.png into a folder, each whole or not at all."""
    write_atomic(folder / f"{name}.md", table(records))
    write_atomic(folder / f"{name}.csv", comma_separated(records))
    figures = {"density": ("density", "kept weights (%)", 100), "bytes": ("bytes", "bytes of the net", 1)}
    for what, (key, label, factor) in figures.items():
        if done := [one for one in records if "accuracy" in one and one[key]]:
            write_atomic(folder / f"{name}-{what}.png", scatter(done, key, label, factor))


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the table as Markdown, a row for each method and density, those that were not run as such."""
    lines = [HEAD, ["---"] * len(HEAD), *(_cells(one) for one in records)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _cells(one: Mapping[str, Any]) -> list[str]:
    asked = "" if one["asked"] is None else f"{100 * one['asked']:g}"
    if "accuracy" not in one:
        cells = dict.fromkeys(HEAD, "") | {"method": one["name"], "asked %": asked, "accuracy %": missing(one)}
        return list((cells | {"dead layers": " ".join(one.get("dead", []))}).values())
    bits, size, p, difference, file = (one.get(key) for key in ("bits", "bytes", "p", "difference", "file_accuracy"))
    hidden = " ".join(f"{100 * (1 - share):.1f}" for share in one["layers"].values())
    nonzero = one.get("nonzero")
    return [
        one["name"],
        asked,
        f"{100 * one['density']:.2f}" + ("" if nonzero is None else f" (not 0: {100 * nonzero:.2f})"),
        f"{100 * one['accuracy']:.2f}" + ("" if file is None else f" (file: {100 * file:.2f})"),
        between(one, "lowest", "highest"),
        "" if difference is None else f"{100 * difference:+.2f}",
        "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}",
        one["values"],
        "" if bits is None else f"{bits:.3g}",
        "" if size is None else f"{size:,}",
        hidden,
        " ".join(one["dead"]) or "none",
        "" if one.get("seconds") is None else f"{one['seconds']:.2f}",
        f"{one['learning_rate']:.3g}",
        seeds(one),
    ]


def missing(one: Mapping[str, Any]) -> str:
    """Return why a row has no accuracy."""
    return f"no seed of {one['failed']} was left" if one.get("failed") else "not run"


def seeds(one: Mapping[str, Any]) -> str:
    """Return how many seeds a row's means are of."""
    return f"{one['runs']}, {one['failed']} excluded" if one["failed"] else str(one["runs"])


def between(one: Mapping[str, Any], least: str, most: str) -> str:
    """Return a range of shares, by its ends' names, in per cent."""
    return f"{100 * one[least]:.2f} to {100 * one[most]:.2f}"


def comma_separated(records: Sequence[Mapping[str, Any]]) -> str:
    """Return all that is known of the rows, not rounded; accuracies and layers as NAME=VALUE or numbers, by spaces."""
    flat = [
        {
            **one,
            "accuracies": " ".join(map(repr, one.get("accuracies", []))),
            "layers": " ".join(f"{layer}={share!r}" for layer, share in one.get("layers", {}).items()),
            "dead": " ".join(one.get("dead", [])),
        }
        for one in records
    ]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(dict.fromkeys(key for one in flat for key in one)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return buffer.getvalue()


def scatter(records: Sequence[Mapping[str, Any]], key: str, label: str, factor: float) -> bytes:
    """Return a picture of accuracy against a figure of each row, lines for the densities of one method.

    The scale is the error's logarithm, so that nets far below the others stay in sight; errors below 0.01 % are drawn
    there.  Colours say what the weights are, or which method it is where all are the same.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6.5), dpi=150, layout="constrained")
    axes = figure.subplots()
    names = dict.fromkeys(one["name"] for one in records)
    alike = len({one["values"] for one in records}) == 1
    shown: set[str] = set()
    labels = []
    for number, name in enumerate(names):
        own = sorted((one for one in records if one["name"] == name and one.get(key)), key=lambda one: one[key])
        if not own:
            continue
        kind = name if alike else own[0]["values"]
        colour = f"C{number}" if alike else COLOURS[kind]
        x = [factor * one[key] for one in own]
        low, y, high = ([max(100 * (1 - one[end]), 0.01) for one in own] for end in ("highest", "accuracy", "lowest"))
        spread = [[b - a for a, b in zip(low, y, strict=True)], [b - a for a, b in zip(y, high, strict=True)]]
        axes.errorbar(
            x,
            y,
            spread,
            fmt="o-",
            color=colour,
            linewidth=0.8,
            markersize=3,
            elinewidth=0.6,
            label=kind if kind not in shown else None,
        )
        shown.add(kind)
        labels.append((x[0], y[0], name, colour))
    axes.set(xlabel=label, ylabel="test accuracy (%)", xscale="log", yscale="log")
    axes.invert_yaxis()
    axes.yaxis.set_major_locator(FixedLocator([0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 90]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda error, _: f"{100 - error:g}")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.margins(x=0.2)  # room for the names
    axes.legend(title=None if alike else "non-zero weights are", fontsize=7, title_fontsize=7)
    if not alike:
        figure.draw_without_rendering()
        places = axes.transData.transform([label[:2] for label in labels]).tolist()
        heights = apart(places, [8 * len(name) for *_, name, _ in labels])
        for (x, y, name, colour), (_, place), height in zip(labels, places, heights, strict=True):
            offset = (4, (height - place) * 72 / figure.dpi)
            axes.annotate(name, (x, y), offset, textcoords="offset points", fontsize=6, color=colour, va="center")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def apart(places: Sequence[tuple[float, float]], widths: Sequence[float], gap: float = 15) -> list[float]:
    """Return heights of labels that begin at some places so that those beside or below each other keep a gap.

    places: left and middle, in pixels; labels only move down.  widths: in pixels.
    """
    heights: dict[int, float] = {}
    for index in sorted(range(len(places)), key=lambda index: -places[index][1]):
        left, height = places[index]
        for other, above in sorted(heights.items(), key=lambda item: -item[1]):
            start = places[other][0]
            if start < left + widths[index] and left < start + widths[other] and abs(above - height) < gap:
                height = above - gap
        heights[index] = height
    return [heights[index] for index in range(len(places))]
