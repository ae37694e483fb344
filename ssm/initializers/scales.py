"""Scales of weights and scores: the standard deviation c of a kernel, computed from its fans, without JAX."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from ssm.errors import UserError, require

Scale = Callable[[int, int], Any]
"""(fan_in, fan_out) -> standard deviation c, a number or a traced scalar."""

ELUS_FCN = math.sqrt(3)
"""Factor on He for the FCN, c^2 * fan_in = 6."""

ELUS_CONV = math.sqrt(1.5)
"""Factor on He for Conv2 to Conv8 and the ResNets, c^2 * fan_in = 3; with 4.5 Conv4 does not learn."""


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """Return (fan_in, fan_out), the connections into and out of one unit of a kernel.

    `shape` is (in, out) for a dense layer and (height, width, in, out) for a convolution; leading axes
    multiply both fans.  Raises `UserError` for fewer than 2 axes, or an axis of length 0.  Source: the
    authors' program (and `jax.nn.initializers`).
    """
    if len(shape) < 2 or 0 in shape:
        raise UserError(
            f"cannot take fan_in and fan_out of shape {tuple(shape)}: a kernel needs at least the axes "
            "(in, out), none of length 0; give biases and norm scales an initialiser of their own"
        )
    field = math.prod(shape[:-2])
    return field * shape[-2], field * shape[-1]


def he(factor: float = 1.0) -> Scale:
    """Return the scale c = factor * sqrt(2 / fan_in).

    Raises `UserError` unless factor > 0.  Source: He et al. 2015.
    """
    require(factor, "factor", "above 0", lambda value: 0 < value < math.inf)
    return lambda fan_in, fan_out: factor * math.sqrt(2 / fan_in)


def xavier() -> Scale:
    """Return the scale c = sqrt(2 / (fan_in + fan_out)).  Source: Glorot and Bengio 2010."""
    return lambda fan_in, fan_out: math.sqrt(2 / (fan_in + fan_out))


def elu() -> Scale:
    """Return the scale c = sqrt(1.5 / fan_in) = sqrt(0.75) * He of the dense baselines.

    Source: equation 3 of the paper with p0 = 0.
    """
    return paper_formula(0.0)


def elus(factor: float = ELUS_FCN) -> Scale:
    """Return the scale c = factor * sqrt(2 / fan_in), He scaled for masks.

    `factor` is `ELUS_FCN` or, for the convolutional nets, `ELUS_CONV`.  Raises `UserError` unless
    factor > 0.  Source: the paper's paragraph "Initialization" and the authors' program.
    """
    return he(factor)


def paper_formula(p0: float, *, fan: str = "in") -> Scale:
    """Return the scale c = sqrt(1.5 / (n * (1 - p0))), where p0 is the share hidden at initialisation.

    `fan` chooses n: 'in', as in the authors' program, or 'out', as in the paper's text.  Raises `UserError`
    for another `fan`, or a p0 outside [0, 1).  Source: equation 3 (and 24) of the paper.
    """
    require(p0, "p0", "in [0, 1)", lambda value: 0 <= value < 1)
    if fan not in ("in", "out"):
        raise UserError(f"fan must be 'in' or 'out', got {fan!r}")

    def scale(fan_in, fan_out):
        n = fan_in if fan == "in" else fan_out
        return (1.5 / (n * (1 - p0))) ** 0.5  # eq. 3

    return scale


SCALES: dict[str, Callable[..., Scale]] = {
    "he": he,
    "xavier": xavier,
    "elu": elu,
    "elus": elus,
    "paper_formula": paper_formula,
}
