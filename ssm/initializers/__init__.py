"""Initialisers for weights and scores: a distribution, and its standard deviation c, computed from the fans."""

from typing import TYPE_CHECKING

from ssm.initializers.scales import ELUS_CONV, ELUS_FCN, SCALES, Scale, elu, elus, fans, he, paper_formula, xavier
from ssm.lazy import attributes

if TYPE_CHECKING:
    from ssm.initializers.draws import DISTRIBUTIONS as DISTRIBUTIONS
    from ssm.initializers.draws import Initializer as Initializer
    from ssm.initializers.draws import by_name as by_name
    from ssm.initializers.draws import normal as normal
    from ssm.initializers.draws import signed_constant as signed_constant
    from ssm.initializers.draws import uniform as uniform

__all__ = [
    "DISTRIBUTIONS",
    "ELUS_CONV",
    "ELUS_FCN",
    "SCALES",
    "Initializer",
    "Scale",
    "by_name",
    "elu",
    "elus",
    "fans",
    "he",
    "normal",
    "paper_formula",
    "signed_constant",
    "uniform",
    "xavier",
]

DRAWN = ("DISTRIBUTIONS", "Initializer", "by_name", "normal", "signed_constant", "uniform")

# They need JAX, which scales, in the paper's tables, do not.
__getattr__ = attributes(__name__, dict.fromkeys(DRAWN, "ssm.initializers.draws"))
