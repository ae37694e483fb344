"""Signed top-k: keep the weights whose scores are the largest, with the sign of the score."""

from typing import Annotated, Any

import jax.numpy as jnp

from ssm.errors import require
from ssm.learners.base import Learner
from ssm.learners.chosen import Shares, chosen, largest_magnitudes
from ssm.learners.edge_popup import SCORES
from ssm.learners.straight_through import straight_through


def signed_top_k(
    *,
    density: Annotated[float, "Share of the weights that is kept."] = 0.5,
    shares: Shares = "uniform",
    scores: Any = SCORES,
) -> Learner:
    """Return the learner of weight = kernel * m, m = sign(score) for the largest |score| of each layer, else 0.

    Gradients go straight to the score.  Counts, ties and `shares` are edge-popup's.  Source: SupSup's program
    (RAIVNLab/supsup), Wortsman et al. 2020, which has the function, but no layer that uses it.

    Raises UserError for a density outside (0, 1].
    """
    require(density, "density", "in (0, 1]", lambda value: 0 < value <= 1)

    def choose(scores, kernels):
        masks = largest_magnitudes(scores, density, shares)
        return {path: jnp.sign(score) * masks[path] for path, score in scores.items()}

    return chosen(scores, choose, lambda kernel, mask, score: kernel * straight_through(mask, score))
