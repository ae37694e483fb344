"""Recipes of the related work's methods: on the one protocol on which all are compared, and as they were published.

Source: the methods' own programs; a value marked "not found" stands in none of them and is the protocol's.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ssm.recipes.change import CONV_NETS, FEEDFORWARD, Change, change


class Method(NamedTuple):
    """A method: its factory in `ssm.learners`, whether `--density` sets its share of weights, and what depends on time.

    timed: (steps in all, steps of an epoch) -> options.  pretrained: whether the weights are trained densely in the
    first half.
    """

    factory: str
    dial: bool = True
    timed: Callable[[int, int], dict[str, Any]] = lambda steps, epoch: {}
    pretrained: bool = False


LITERATURE: Mapping[str, Method] = {
    # Masks over frozen weights.
    "zhou": Method("zhou", dial=False),
    "edge_popup": Method("edge_popup"),
    "iterand": Method("iterand"),
    "mpt": Method("mpt"),
    "mpt_global": Method("mpt_global", timed=lambda steps, epoch: {"epoch": epoch}),
    "gem_miner": Method("gem_miner", timed=lambda steps, epoch: {"every": 5 * epoch, "steps": steps}),
    "signed_top_k": Method("signed_top_k"),
    "variable_threshold": Method("variable_threshold"),
    "steered": Method(
        "steered", timed=lambda steps, epoch: {"steps": steps // 2, "counted": steps - max(1, steps // 100)}
    ),
    # Weights are trained, connections chosen.
    "force": Method("force"),
    "set": Method("sparse_evolutionary", timed=lambda steps, epoch: {"every": epoch}),
    "rigl": Method("rigl", timed=lambda steps, epoch: {"steps": steps}),
    "granet": Method("granet", timed=lambda steps, epoch: {"every": 500, "steps": steps}),
    # Latent weights.
    "twn": Method("twn"),
    "ttq": Method("ttq", pretrained=True),
    "sca": Method("sca", dial=False, timed=lambda steps, epoch: {"ramp": steps // 2}),
    "lr_net": Method("lr_net", dial=False, pretrained=True),
    "binary_connect": Method("binary_connect", dial=False),
    "bnn": Method("bnn", dial=False),
    "bbg": Method("bbg", dial=False),
}
"""The methods by name."""

STEERED = "steered"
"""The method that a density makes of the signed Supermask: the most accurate way to one (docs/literature.md)."""


def meant(model: str, method: str, preset: str, density: float | None) -> str:
    """Return the method whose recipe is meant: `STEERED` where the signed Supermask is given a density.

    model: as the recipes know it.  ResNets, and all under the presets that are the paper's, keep the signed recipe, and
    `learned_by` steers the threshold.
    """
    has_recipe = model in FEEDFORWARD and preset in ("default", "protocol")
    return STEERED if method == "signed" and density and has_recipe else method


def learned_by(method: str, density: float) -> str:
    """Return the name in `LITERATURE` of the method that learns; empty for the paper's own."""
    return STEERED if method == "signed" and density else method if method in LITERATURE else ""


_NAMES = tuple(LITERATURE)
_FROZEN = ("edge_popup", "iterand", "signed_top_k", "variable_threshold", "gem_miner", "zhou")
_TRAINED = ("set", "rigl", "granet")

PROTOCOL: tuple[Change, ...] = (
    change(FEEDFORWARD, (*_NAMES, "baseline"), epochs=100, decay="coupled", schedule="cosine"),
    change(FEEDFORWARD, "baseline", init="elu", weight_distribution="uniform", learning_rate=0.05, weight_decay=5e-4),
    change(FEEDFORWARD, _NAMES, density=0.1, nesterov=False, learning_rate=0.1, weight_decay=1e-4),
    change(FEEDFORWARD, _NAMES, init="elu", weight_distribution="uniform"),
    change(FEEDFORWARD, _FROZEN, init="paper_formula", weight_distribution="signed_constant"),
    change(FEEDFORWARD, _FROZEN, p0=None),  # 1 - density: the scale for the share that is kept
    change(CONV_NETS, "iterand", learning_rate=0.3),
    change(FEEDFORWARD, ("mpt", "mpt_global"), init="he", weight_distribution="normal"),
    change(FEEDFORWARD, "mpt", method_options="alpha=kept"),
    change(FEEDFORWARD, "gem_miner", weight_decay=0.0, p0=0.5),
    change(FEEDFORWARD, "zhou", density=0.0, learning_rate=100.0, weight_decay=0.0, init="elu", p0=0.5),
    change(FEEDFORWARD, "zhou", schedule="exponential", decay_rate=1.0),
    change(FEEDFORWARD, "steered", decay="decoupled", nesterov=True, init="elus"),
    change(FEEDFORWARD, "steered", learning_rate=0.05, weight_decay=5e-4, weight_distribution="signed_constant"),
    change("fcn", "steered", learning_rate=0.15, elus_factor=6**0.5),  # c = sqrt(12 / fan_in)
    change(FEEDFORWARD, (*_TRAINED, "force"), nesterov=True, learning_rate=0.05, weight_decay=5e-4),
    change(FEEDFORWARD, ("force", "twn"), init="he", weight_distribution="normal"),
    change(FEEDFORWARD, "twn", learning_rate=0.05),
    change(FEEDFORWARD, "ttq", learning_rate=0.01, weight_decay=2e-4, cycles=2, method_options="start=mean"),
    change(FEEDFORWARD, "sca", density=0.0, learning_rate=0.05, weight_decay=0.0),
    change(FEEDFORWARD, "sca", init="xavier", method_options="density=0.5,start=1.0"),
    change(FEEDFORWARD, "lr_net", density=0.0, optimizer="adam", learning_rate=0.01, weight_decay=0.0),
    change(FEEDFORWARD, "lr_net", schedule="steps", milestones="0.6,0.85", decay_rate=0.1),
    change(FEEDFORWARD, "lr_net", method_options="draws=10,scaled=True"),
    change(FEEDFORWARD, ("binary_connect", "bnn", "bbg"), density=0.0, optimizer="adam", weight_decay=0.0),
    change(FEEDFORWARD, ("binary_connect", "bnn", "bbg"), schedule="exponential", staircase=False, decay_rate=1e-3),
    change(FEEDFORWARD, ("binary_connect", "bnn", "bbg"), decay_epochs=100, init="xavier", learning_rate=1e-3),
    change(CONV_NETS, "binary_connect", learning_rate=3e-3),
    change(FEEDFORWARD, "binary_connect", method_options="size=glorot"),
    change(FEEDFORWARD, ("bnn", "bbg"), activation="sign", batch_norm="statistics"),
    change(FEEDFORWARD, "bnn", decay_rate=3e-4, learning_rate=3e-3),
    change(CONV_NETS, "bnn", learning_rate=1e-3),
)
"""Block A of the protocol (no batch normalisation, ELU), and for BNN and BBG, which need it, block B."""
