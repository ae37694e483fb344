"""Edge-popup: keep the weights whose scores are the largest."""

import math
from typing import Annotated

from ssm.errors import require
from ssm.initializers import he, uniform
from ssm.learners.base import Learner
from ssm.learners.chosen import Shares, chosen, largest_magnitudes
from ssm.learners.straight_through import magnitude, straight_through

SCORES = uniform(he(1 / math.sqrt(6)))  # U(-b, b), b = 1 / sqrt(fan_in)


def edge_popup(
    *,
    density: Annotated[float, "Share of the weights that is kept."] = 0.5,
    shares: Shares = "uniform",
) -> Learner:
    """Return the learner of weight = kernel * m, m = 1 for the largest |score| of each layer.

    Gradients go to |score| as if it were the mask, so that a score of 0 gets none.  All but int((1 - density) n) of n
    weights are kept, of each layer or as `shares` says; of equal scores at the border, the last in order.  Source:
    Ramanujan et al. 2020 and its program (allenai/hidden-networks), whose `prune_rate` is the share kept.

    Raises UserError for a density outside (0, 1].
    """
    require(density, "density", "in (0, 1]", lambda value: 0 < value <= 1)

    def weight(kernel, mask, score):
        return kernel * straight_through(mask, magnitude(score))

    return chosen(SCORES, lambda scores, kernels: largest_magnitudes(scores, density, shares), weight)
