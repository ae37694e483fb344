"""Every figure of the paper by its name there, and the drawing of those for which there are runs."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from paper.figures import bars, curves, maps
from paper.figures.curves import Drawn
from paper.figures.selection import Missing, Shelf
from ssm.runs.reader import without_damaged
from ssm.viz.style import save

_DRAW: Sequence[Callable[[Shelf], Drawn]] = (
    maps.fcn_mask_l0,
    bars.conv_mask_dist,
    bars.conv_mask_eq,
    maps.bin_mask_comparison,
    curves.all_acc,
    curves.fcn_sisu_one_ratio,
    curves.all_one_ratio,
    bars.all_mask_dist,
    bars.all_mask_eq,
    maps.conv_mask_comparison,
    maps.fcn_mask_comparison,
    curves.rn_acc_oratio,
    bars.rn_mask_dist,
    curves.fcn_acc_compare_wdist,
    curves.cnn_acc_compare_wdist,
    curves.cnn_oratio_compare_wdist,
    curves.fcn_acc_compare_minit,
    curves.cnn_acc_compare_minit,
    curves.cnn_oratio_compare_minit,
    curves.cnn_sci_all_metrics,
    curves.all_schizo12_acc,
    curves.fcn_schizo_oneratio,
    bars.all_schizo_mask_dist,
)
FIGURES = {draw.__name__: draw for draw in _DRAW}
"""The function that draws each figure, by its label in the paper, in the paper's order."""

_NAMED = 6
"""Most runs that a line names."""


class Outcome(NamedTuple):
    """A file that was written, or a figure that was not drawn (path None), and a line about it to print."""

    name: str
    path: Path | None
    text: str


def draw_all(shelf: Shelf, out: Path, *, names: Sequence[str] = ()) -> Iterator[Outcome]:
    """Draw the figures of these names, or all, into `out`, as PNG and SVG, and yield each outcome at once.

    A run with a damaged file is left out of the figures that need it, with a warning, unless there is no other run.

    Raises:
        OSError: if a file cannot be written.
        DamagedRun: if all runs are damaged.
    """
    for name in names or FIGURES:
        try:
            drawn = without_damaged(
                {run.folder: run for run in shelf.runs}, lambda left, name=name: FIGURES[name](shelf.of(left))
            )
        except Missing as missing:
            yield Outcome(name, None, f"{name}: not drawn: {missing}")
            continue
        runs = list(dict.fromkeys(run.name for run in drawn.runs))
        # The files' metadata names all runs; thirty are too many for a line.
        used = ", ".join(runs) if len(runs) <= _NAMED else f"{len(runs)} runs"
        without = f"; without {', '.join(drawn.without)}" if drawn.without else ""
        for path in save(drawn.figure, out, name, description=f"{name}, drawn from {', '.join(runs)}"):
            yield Outcome(name, path, f"{path}: from {used}{without}")
