"""Every figure of the paper by the name it has there, and the drawing of all that some runs hold."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from paper.figures import bars, curves, maps
from paper.figures.curves import Drawn
from paper.figures.selection import Missing, Shelf
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
"""What draws each figure, by its label in the paper and in the paper's order."""

_NAMED = 6
"""Runs that a line names, at most."""


class Told(NamedTuple):
    """One line for people: of a file that was written, or of a figure that was not drawn (path None)."""

    name: str
    path: Path | None
    text: str


def draw_all(shelf: Shelf, out: Path, *, names: Sequence[str] = ()) -> Iterator[Told]:
    """Draw the figures of these names, or all, into `out`, as PNG and SVG, and tell of each as soon as it is done.

    Raises:
        OSError: if a file cannot be written.
        UserError: for a damaged file of a run.
    """
    for name in names or FIGURES:
        try:
            drawn = FIGURES[name](shelf)
        except Missing as missing:
            yield Told(name, None, f"{name}: not drawn: {missing}")
            continue
        runs = list(dict.fromkeys(run.name for run in drawn.runs))
        # The files name all runs within; a line of thirty helps nobody.
        used = ", ".join(runs) if len(runs) <= _NAMED else f"{len(runs)} runs"
        without = f"; without {', '.join(drawn.without)}" if drawn.without else ""
        for path in save(drawn.figure, out, name, description=f"{name}, drawn from {', '.join(runs)}"):
            yield Told(name, path, f"{path}: from {used}{without}")
