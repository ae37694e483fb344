"""The rows of the comparison: methods with their options, and what the weights of their nets are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Values = Literal["frozen", "one a layer", "two a layer", "trained"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A row: a method, its options beside the protocol's, and whether it is run at several densities.

    values: what the weights that are not 0 are: `frozen` (+c or -c as they were drawn, c a layer's), `one a layer` or
    `two a layer` (learned or computed), or all `trained`.
    """

    name: str
    method: str
    values: Values
    options: Mapping[str, Any] = field(default_factory=dict)
    dial: bool = False

    def overrides(self, density: float | None) -> dict[str, Any]:
        """Return the options of its runs at a density."""
        return dict(self.options) | ({"density": density} if self.dial else {})


def _entry(name: str, method: str, values: Values, *, dial: bool = False, **options: Any) -> Entry:
    return Entry(name=name, method=method, values=values, options=options, dial=dial)


BLOCK_A = (
    _entry("dense", "baseline", "trained"),
    _entry("dense, decoupled decay", "baseline", "trained", decay="decoupled"),
    _entry("signed Supermask", "signed", "frozen"),
    _entry("signed Supermask, coupled decay", "signed", "frozen", decay="coupled"),
    _entry("binary Supermask", "binary", "frozen"),
    _entry("signed, threshold steered", "steered", "frozen", dial=True),
    _entry("signed top-k", "signed_top_k", "frozen", dial=True),
    _entry("signed, quantile thresholds", "variable_threshold", "frozen", dial=True),
    _entry("edge-popup", "edge_popup", "frozen", dial=True),
    _entry("edge-popup, ERK", "edge_popup", "frozen", dial=True, method_options="shares=erk"),
    _entry("IteRand", "iterand", "frozen", dial=True),
    _entry("MPT-1/32", "mpt", "one a layer", dial=True),
    _entry("MPT-1/32, global", "mpt_global", "one a layer", dial=True),
    _entry("Gem-Miner", "gem_miner", "frozen", dial=True),
    _entry("Zhou's Supermask", "zhou", "frozen"),
    _entry("FORCE", "force", "trained", dial=True),
    _entry("SET", "set", "trained", dial=True),
    _entry("RigL", "rigl", "trained", dial=True),
    _entry("GraNet", "granet", "trained", dial=True),
    _entry("TWN, 0.7", "twn", "one a layer", density=0.0),
    _entry("TWN, by density", "twn", "one a layer", dial=True),
    _entry("TTQ, 0.05", "ttq", "two a layer", density=0.0),
    _entry("TTQ, by density", "ttq", "two a layer", dial=True),
    _entry("SCA", "sca", "one a layer"),
    _entry("LR-Net", "lr_net", "one a layer"),
    _entry("BinaryConnect", "binary_connect", "one a layer"),
)
"""No batch normalisation, ELU."""

NORMALISED = {"batch_norm": "statistics", "activation": "relu"}
BLOCK_B = (
    *(
        _entry(one.name, one.method, one.values, dial=one.dial, **{**one.options, **NORMALISED})
        for one in BLOCK_A
        if "decay" not in one.options
    ),
    _entry("BNN", "bnn", "one a layer"),
    _entry("BBG (experimental)", "bbg", "one a layer"),
)
"""Batch normalisation without scale and offset after every layer, ReLU; BNN and BBG have sign activations."""

_PAPER = {"schedule": "exponential", "factor": 3**0.5, "learning_rate": 0.05}
"""The paper's rates and frozen weights of the FCN: those hardly fall, these are sqrt(6 / fan_in)."""

WAYS = (
    _entry("threshold steered", "steered", "frozen", dial=True),
    _entry("threshold steered, the paper's schedule", "steered", "frozen", dial=True, **_PAPER),
    _entry("top-k of each layer", "signed_top_k", "frozen", dial=True),
    _entry("top-k of each layer, ERK", "signed_top_k", "frozen", dial=True, method_options="shares=erk"),
    _entry("top-k of all layers", "signed_top_k", "frozen", dial=True, method_options="shares=global"),
    _entry("quantiles of each layer", "variable_threshold", "frozen", dial=True),
)
"""Ways of the signed Supermask to a density: the protocol's, and what takes a schedule or the layers' shares apart."""


class Block(NamedTuple):
    """A table of the comparison: its rows, the densities of those with a dial, and the row that differences are to.

    densities: as the command line has them.  reference: a row's name, at the same density if it has several.
    """

    entries: tuple[Entry, ...]
    densities: str
    reference: str


BLOCKS = {
    "a": Block(BLOCK_A, "0.1,0.036,0.01", "signed Supermask"),
    "b": Block(BLOCK_B, "0.1,0.036,0.01", "signed Supermask"),
    "ways": Block(WAYS, "0.1,0.036,0.02,0.01,0.005", "threshold steered"),
}
