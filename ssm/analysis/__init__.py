"""What masks say: pure functions of int8 arrays in {-1, 0, 1}, on NumPy and SciPy alone.

A layer's masks have shape [seeds, inputs, outputs] or [seeds, height, width, inputs, outputs]; `by_layer` takes a
function of one layer to all layers of a net, and to all together.
"""

from ssm.analysis.flow import Flow, flow
from ssm.analysis.masks import (
    ALL,
    Equality,
    Moves,
    Shares,
    always_hidden,
    by_layer,
    equality,
    flip_rate,
    hidden_inputs,
    input_sums,
    moves,
    shares,
)
from ssm.analysis.sizes import Sizes, compression, sizes, total
from ssm.analysis.statistics import Comparison, compare, welch
from ssm.analysis.structure import PermutationTest, Profiles, permutation_test, profiles, shuffled, similarity

__all__ = [
    "ALL",
    "Comparison",
    "Equality",
    "Flow",
    "Moves",
    "PermutationTest",
    "Profiles",
    "Shares",
    "Sizes",
    "always_hidden",
    "by_layer",
    "compare",
    "compression",
    "equality",
    "flip_rate",
    "flow",
    "hidden_inputs",
    "input_sums",
    "moves",
    "permutation_test",
    "profiles",
    "shares",
    "shuffled",
    "similarity",
    "sizes",
    "total",
    "welch",
]
