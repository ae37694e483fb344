"""Multi-prize tickets (MPT-1/32, biprop): binarised weights, chosen by scores."""

from typing import Annotated, Literal

import jax.numpy as jnp

from ssm.errors import require
from ssm.learners.base import Learner
from ssm.learners.chosen import chosen, largest_magnitudes
from ssm.learners.edge_popup import SCORES
from ssm.learners.straight_through import magnitude, straight_through


def mpt(
    *,
    density: Annotated[float, "Share of each layer's weights that is kept."] = 0.5,
    alpha: Annotated[
        Literal["program", "kept"], "Divide the sum of kept magnitudes by int(density n), or by the number kept."
    ] = "program",
) -> Learner:
    """Return the learner of weight = alpha sign(kernel) m, alpha = sum(|kernel| m) / number, m as edge-popup's.

    Gradients to the score are g kernel sign(score): through the sign times |kernel|, not alpha.  With `program`, as in
    the authors' program, alpha is infinite where density * n < 1.  Source: Diffenderfer and Kailkhura 2021 and its
    program (chrundle/biprop).

    Raises UserError for a density outside (0, 1].
    """
    require(density, "density", "in (0, 1]", lambda value: 0 < value <= 1)

    def weight(kernel, mask, score):
        number = jnp.sum(mask) if alpha == "kept" else int(density * kernel.size)
        return binarized(kernel, mask, score, number)

    return chosen(SCORES, lambda scores, kernels: largest_magnitudes(scores, density), weight)


def binarized(kernel, mask, score, number):
    """Return alpha sign(kernel) mask, alpha the sum of kept magnitudes over `number`; the gradient is that of MPT."""
    size = jnp.sum(jnp.abs(kernel) * mask) / number
    return straight_through(size * jnp.sign(kernel) * mask, kernel * magnitude(score))
