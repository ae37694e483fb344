"""Lines over epochs with bands, and final values with error bars: means, 5 % and 95 % quantiles over the seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from ssm.viz.style import LOOKS, Look, in_style, new_figure

PERCENT = FuncFormatter(lambda value, _: f"{value:g}")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One run's mean and 5 % and 95 % quantiles over its seeds, by epoch, in the unit of the axis."""

    label: str
    epochs: Int[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    q05: Float[np.ndarray, " n"]
    q95: Float[np.ndarray, " n"]
    look: Look


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes: its lines, its title and unit, and whether its scale is logarithmic."""

    title: str
    unit: str
    lines: Sequence[Line]
    log: bool = False


@in_style
def draw_curves(panels: Sequence[Sequence[Panel | None]], *, title: str, height: float = 3.1) -> Figure:
    """Draw panels by row and column, each `height` inches high; None leaves a cell empty."""
    rows, columns = len(panels), max(len(row) for row in panels)
    figure = new_figure(height * rows + 0.5, title=title)
    axes = figure.subplots(rows, columns, squeeze=False)
    for row in range(rows):
        for column in range(columns):
            panel = panels[row][column] if column < len(panels[row]) else None
            if panel is None:
                axes[row, column].set_axis_off()
            else:
                _draw(axes[row, column], panel)
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    for line in panel.lines:
        few = len(line.epochs) <= 1
        axes.fill_between(line.epochs, line.q05, line.q95, color=line.look.colour, alpha=0.22, linewidth=0)
        axes.plot(
            line.epochs,
            line.mean,
            color=line.look.colour,
            linestyle=line.look.line,
            marker=line.look.marker,
            markevery=max(1, len(line.epochs) // 8),
            markersize=7 if few else 4.5,
            label=line.label,
        )
    axes.set(title=panel.title, xlabel="epoch", ylabel=panel.unit)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    if panel.log:
        percent_scale(axes)
    if any(line.label for line in panel.lines):
        axes.legend()


def percent_scale(axes: Axes) -> None:
    """Give the y axis a logarithmic scale whose ticks are plain numbers, some of them between the powers of ten."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high > 60:
        axes.set_ylim(top=max(high, 100))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 300 else (1.0,)))
    axes.yaxis.set_major_formatter(PERCENT)
    axes.yaxis.set_minor_formatter(NullFormatter())


@dataclass(frozen=True, kw_only=True)
class Finals:
    """One series of final values: mean and quantiles at each place on the axis, NaN where there is none."""

    label: str
    mean: Float[np.ndarray, " places"]
    q05: Float[np.ndarray, " places"]
    q95: Float[np.ndarray, " places"]


@in_style
def draw_finals(
    panels: Sequence[tuple[str, str, bool, Sequence[Finals]]], places: Sequence[str], *, title: str, height: float = 3.6
) -> Figure:
    """Draw final values by place with error bars; a panel is (title, unit, logarithmic, series)."""
    figure = new_figure(height + 0.5, title=title)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (name, unit, log, series) in zip(axes, panels, strict=True):
        for number, finals in enumerate(series):
            look = LOOKS[number % len(LOOKS)]
            x = np.arange(len(places)) + 0.16 * (number - (len(series) - 1) / 2)
            spread = np.maximum([finals.mean - finals.q05, finals.q95 - finals.mean], 0)
            axis.errorbar(
                x, finals.mean, spread, color=look.colour, fmt=look.marker, capsize=4, markersize=6, label=finals.label
            )
        axis.set(title=name, ylabel=unit, xlim=(-0.6, len(places) - 0.4))
        axis.set_xticks(range(len(places)), places)
        if log:
            percent_scale(axis)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.07), ncols=2)
    return figure
