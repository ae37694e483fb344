"""What masks say: pure functions of int8 arrays in {-1, 0, 1}, on NumPy and SciPy alone.

A layer's masks have shape [seeds, inputs, outputs] or [seeds, height, width, inputs, outputs]; `by_layer` takes a
function of one layer to all layers of a net, and to all together.
"""

from ssm.analysis.always import always_hidden, hidden_inputs, input_sums
from ssm.analysis.compare import Comparison, compare
from ssm.analysis.equality import Equality, equality
from ssm.analysis.flow import Flow, flow
from ssm.analysis.layers import ALL, by_layer
from ssm.analysis.shares import Moves, Shares, flip_rate, moves, shares
from ssm.analysis.shuffle import shuffled
from ssm.analysis.sizes import Sizes, compression, sizes, total
from ssm.analysis.structure import PermutationTest, Profiles, permutation_test, profiles, similarity
from ssm.statistics import welch

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
