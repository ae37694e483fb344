"""A table before formatting: flat records, and how each column shows one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paper.tables import cells
from paper.tables.figures import Figure
from paper.tables.printed import Record

NOTE = """\
mean [5 %, 95 % quantile]; seconds are the median per epoch and seed (the paper's: its authors' single GPU).
overlap: whether the two intervals from the 5 % to the 95 % quantile have a point in common; undetermined where the
paper's rounding decides, unknown where an interval is not printed, or there is one seed. The interval of few seeds is
too narrow: of 2, 3, 10, 20 and 50 on average 0.31, 0.46, 0.79, 0.87 and 0.945 of that of all.
p: Welch's t-test, not corrected for the number of tests; it leaves out that runs of a fixed order share one order of
the data, unless the row says that each has its own. The paper's standard deviation is an estimate from its printed
quantiles, as if normal, so p is one too: from the least to the largest of all numbers that round to the printed ones.
It is left out where the paper prints no quantiles, the data sets differ, and, as overlap is, where a run has fewer
epochs than the paper's or differs from its preset's recipe."""


@dataclass(frozen=True)
class Column:
    """A column's title, and the text of its cell."""

    title: str
    show: Callable[[Record], str]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: its name on the command line, its title, its rows as records, and the notes below it.

    `group` is the key whose change begins a new part of the table; `common` is a note that tables share.
    """

    name: str
    title: str
    columns: Sequence[Column]
    records: Sequence[Record]
    notes: Sequence[str] = ()
    group: str = ""
    common: str = ""

    def cells(self) -> list[list[str]]:
        """Return the text of every row."""
        return [[column.show(record) for column in self.columns] for record in self.records]

    def breaks(self) -> list[bool]:
        """Return, for every row, whether a new part of the table begins with it."""
        groups = [record.get(self.group) for record in self.records]
        return [index > 0 and group != groups[index - 1] for index, group in enumerate(groups)]


def plain(title: str, key: str) -> Column:
    """Return a column that shows a value unrounded."""
    return Column(title, lambda record: cells.text(record.get(key)))


NET = [
    Column(title, lambda record, at=at: cells.net(record)[at]) for at, title in enumerate(("model", "method", "init"))
]
HOW = [
    Column("preset", cells.preset),
    plain("dataset", "dataset"),
    Column("epochs", cells.epochs),
    Column("runs", cells.runs),
]
TIME = [
    Column("s / epoch / seed", lambda record: cells.seconds(record["seconds"])),
    Column("paper", cells.paper_seconds),
]
RUN = [plain("run", "run")]


def beside(figure: Figure) -> list[Column]:
    """Return the columns of a figure: ours, the paper's, and how they differ."""
    return [
        Column(figure.title, lambda record: cells.interval(record, figure)),
        Column("paper", lambda record: cells.interval(record, figure, paper=True)),
        Column("difference", lambda record: cells.difference(record, figure)),
        plain("overlap", f"{figure.name}_overlap"),
        Column("p", lambda record: cells.p(record, figure)),
    ]
