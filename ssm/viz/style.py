"""What all figures share: one style file, colours distinct in grey and for colour-blind readers, and saving."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

from matplotlib import style
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from ssm.files import write_atomic

STYLE = Path(__file__).with_name("ssm.mplstyle")
WIDTH = 10.0
"""Width of every figure in inches; 1000 px in a PNG, the width of a README."""

# Okabe and Ito's colours, which colour-blind readers can distinguish.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
BLACK = "#000000"

# Dark blue against vermillion: they differ in lightness too, and both stand out from the pale 0.
MINUS, ZERO, PLUS = "#08306B", "#E9E9E9", VERMILLION
SIGNS = ListedColormap([MINUS, "#FFFFFF", PLUS], name="signs")
"""Colours of a mask's -1, 0 and 1, for limits of -1.5 and 1.5."""


class Look(NamedTuple):
    """The look of one line or bar, which differs from the others in more than its colour."""

    colour: str
    line: Any
    marker: str
    hatch: str


LOOKS = (
    Look(BLUE, "-", "o", ""),
    Look(VERMILLION, (0, (5, 2)), "s", "////"),
    Look(GREEN, (0, (4, 1.5, 1, 1.5)), "^", "...."),
    Look(PURPLE, (0, (1, 1.2)), "D", "xx"),
    Look(BLACK, (0, (7, 2, 1, 2, 1, 2)), "v", "\\\\\\\\"),
    Look(ORANGE, (0, (3, 1)), "P", "++"),
)

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the project's style; the user's own settings are restored afterwards."""
    with style.context(STYLE, after_reset=True):
        yield


def in_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorate a drawing function so that it uses the project's style."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with styled():
            return draw(*args, **kwargs)

    return drawn


def new_figure(height: float, *, title: str = "", layout: Literal["constrained"] | None = "constrained") -> Figure:
    """Return an empty figure, `WIDTH` inches wide and `height` high, its title at the top left."""
    figure = Figure(figsize=(WIDTH, height), layout=layout)
    if title:
        # The layout makes room for a title only if its height is not given.
        figure.suptitle(title, x=0.01, ha="left", **({} if layout else {"y": 1 - 0.08 / height, "va": "top"}))
    return figure


def to_png(figure: Figure, *, description: str = "") -> bytes:
    """Return a figure as PNG: the same bytes each time it is drawn by the same libraries."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format="png", metadata=_noted(description, "Software"), pil_kwargs={"optimize": True})
    return buffer.getvalue()


def to_svg(figure: Figure, *, description: str = "") -> bytes:
    """Return a figure as SVG: without a date, and with stable identifiers."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format="svg", metadata=_noted(description, "Date", "Creator"))
    return buffer.getvalue()


def _noted(description: str, *without: str) -> dict[str, str | None]:
    return {**dict.fromkeys(without), **({"Description": description} if description else {})}


def save(figure: Figure, folder: Path, name: str, *, description: str = "") -> list[Path]:
    """Write folder/NAME.png and folder/NAME.svg, and return both paths; each with the description in its metadata.

    Raises:
        OSError: if a file cannot be written.
    """
    paths = []
    for ending, render in (("png", to_png), ("svg", to_svg)):
        paths.append(folder / f"{name}.{ending}")
        write_atomic(paths[-1], render(figure, description=description))
    return paths
