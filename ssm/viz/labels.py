"""Names of runs, their settings and their layers in figures."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ssm.runs.reader import FinishedRun

MODELS = {"fcn": "FCN", "resnet20": "ResNet20", "resnet56": "ResNet56", "resnet110": "ResNet110"}
MODELS |= {f"conv{layers}": f"Conv{layers}" for layers in (2, 4, 6, 8)}
METHODS = {
    "signed": "signed Supermask",
    "binary": "binary Supermask",
    "baseline": "baseline",
    "own": "own learner",
    "steered": "signed Supermask, threshold steered",
    "variable_threshold": "signed Supermask, quantile thresholds",
    "signed_top_k": "signed top-k",
    "edge_popup": "edge-popup",
    "iterand": "IteRand",
    "mpt": "MPT-1/32",
    "mpt_global": "MPT-1/32, global",
    "gem_miner": "Gem-Miner",
    "zhou": "Zhou's Supermask",
    "force": "FORCE",
    "set": "SET",
    "rigl": "RigL",
    "granet": "GraNet",
    "twn": "TWN",
    "ttq": "TTQ",
    "sca": "SCA",
    "lr_net": "LR-Net",
    "binary_connect": "BinaryConnect",
    "bnn": "BNN",
    "bbg": "BBG",
}
INITS = {"elus": "ELUS", "elu": "ELU", "he": "He", "xavier": "Xavier", "paper_formula": "ELUS (paper's formula)"}
DATASETS = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "mnist5k": "MNIST (5,000 digits)",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
}

OWN_VALUES = ("force", "set", "rigl", "granet")
"""Methods that train each weight that they keep by itself."""
_FROZEN = "frozen random weights"
_ONE, _TWO = "one trained value of each layer, and its negative", "two trained values of each layer"
WEIGHTS = {
    **dict.fromkeys(("signed", "binary", "steered", "variable_threshold", "signed_top_k", "edge_popup"), _FROZEN),
    **dict.fromkeys(("gem_miner", "zhou"), _FROZEN),
    "iterand": f"{_FROZEN}, the hidden ones drawn anew from time to time",
    **dict.fromkeys(("mpt", "mpt_global"), "one value of each layer, with the signs of frozen random weights"),
    **dict.fromkeys((*OWN_VALUES, "baseline"), "trained, each by itself"),
    **dict.fromkeys(("twn", "bbg"), _ONE),
    "ttq": _TWO,
    **dict.fromkeys(("sca", "lr_net", "binary_connect", "bnn"), "one fixed value of each layer, and its negative"),
}
"""What the weights that are not 0 are, by method."""


class Signs(NamedTuple):
    """What -1, 0 and 1 in a mask mean; `minus` is None where no mask holds it."""

    minus: str | None
    zero: str
    plus: str


INVERTING, CHOOSING = Signs("inverted", "hidden", "kept"), Signs(None, "hidden", "kept")
_OF_WEIGHTS = Signs("negative", "hidden", "positive")
_SIGNS: dict[str, Signs] = dict.fromkeys(("binary", "edge_popup", "iterand", "mpt", "mpt_global"), CHOOSING)
_SIGNS |= dict.fromkeys(("gem_miner", "zhou", *OWN_VALUES), CHOOSING)
_SIGNS |= dict.fromkeys(("twn", "ttq", "sca", "lr_net", "binary_connect", "bnn", "bbg"), _OF_WEIGHTS)

_KINDS = {"Conv": 0, "Block": 1, "Dense": 2}


def method(name: str) -> str:
    """Return a method's display name; that of one without is its own."""
    return METHODS.get(name, name)


def signs(name: str) -> Signs:
    """Return what the values of a method's masks mean."""
    return _SIGNS.get(name, INVERTING)


def dataset(name: str) -> str:
    """Return a data set's display name."""
    plain = name.removeprefix("tfds:")
    return DATASETS.get(plain, plain)


def number(values: Iterable[float], noun: str) -> str:
    """Return a count, or its range over several runs, with a noun: "1 seed", "50 seeds", "10 to 50 seeds"."""
    found = sorted(set(values))
    many = "" if found == [1] else "s"
    return f"{found[0]} to {found[-1]} {noun}s" if len(found) > 1 else f"{found[0]} {noun}{many}"


def about(runs: Sequence[FinishedRun], seeds: Sequence[int] = ()) -> str:
    """Return a title's description of a figure's runs: data sets, numbers of seeds and of epochs.

    seeds: how many of each run were used (default: all).
    """
    names = dict.fromkeys(dataset(run.setting("dataset")) for run in runs)
    counts = seeds or [len(run.seeds) for run in runs]
    epochs = [run.setting("epochs") for run in runs]
    return f"{', '.join(names)}; {number(counts, 'seed')}, {number(epochs, 'epoch')}"


def ordered(layers: Iterable[str]) -> list[str]:
    """Return layer names in the order in which an image passes them: convolutions, blocks, dense layers."""

    def place(layer: str) -> tuple[int, list[int]]:
        return _KINDS.get(re.split(r"\d|_", layer)[0], 9), [int(digits) for digits in re.findall(r"\d+", layer)]

    return sorted(layers, key=place)


def percent(share: float) -> str:
    """Return a share from 0 to 1 in %, with two decimals."""
    return f"{100 * share:.2f} %"


def initialisation(run: FinishedRun, among: Iterable[FinishedRun]) -> str:
    """Return the name of a run's initialisation, with its preset where that differs within `among`."""
    name = INITS[run.setting("init")]
    presets = {other.setting("preset") for other in among}
    return f"{name} (preset {run.setting('preset')})" if len(presets) > 1 else name
