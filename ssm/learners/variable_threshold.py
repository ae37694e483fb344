"""The signed Supermask under thresholds that follow the scores: its ends are always the same shares of a layer."""

from typing import Annotated, Any

from ssm.errors import require
from ssm.learners.base import SCORES, Learner
from ssm.learners.chosen import chosen
from ssm.learners.selection import kept_of, largest_of_each
from ssm.learners.straight_through import straight_through


def variable_threshold(
    *, density: Annotated[float, "Share of each layer's weights that is kept."] = 0.1, scores: Any = SCORES
) -> Learner:
    """Return the learner of weight = kernel * m, m = 1 for the top and -1 for the bottom of each layer's scores.

    Both ends are half of the share, the odd weight at the top; gradients go straight to the score.  Source: a form of
    the authors' program that the paper does not mention (thresholds at quantiles of the scores in each step).

    Raises UserError for a density outside (0, 1].
    """
    require(density, "density", "in (0, 1]", lambda value: 0 < value <= 1)

    def choose(scores, kernels):
        kept = {path: kept_of(score.size, density) for path, score in scores.items()}
        ends = {f"{path}/top": (score, kept[path] - kept[path] // 2) for path, score in scores.items()}
        ends |= {f"{path}/bottom": (-score, kept[path] // 2) for path, score in scores.items()}
        found = largest_of_each({end: one[0] for end, one in ends.items()}, {end: one[1] for end, one in ends.items()})
        return {path: found[f"{path}/top"] - found[f"{path}/bottom"] for path in scores}

    return chosen(scores, choose, lambda kernel, mask, score: kernel * straight_through(mask, score))
