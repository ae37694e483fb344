"""Named recipes: what the paper says, what its program does, and what works best, row by row of the ledger.

Each recipe is a mapping of option names to values; later ones overwrite earlier ones.
"""

import math
from collections.abc import Mapping
from typing import Any

PRESETS = ("default", "paper", "code")
METHODS = ("signed", "binary", "baseline")
INITS = ("elus", "he", "xavier", "elu", "paper_formula")

_COMMON: dict[str, Any] = {
    "batch_size": 128,
    "decay": "decoupled",  # ledger row 1
    "momentum": 0.9,
    "nesterov": True,  # row 2
    "decay_rate": 0.96,  # row 3
    "decay_epochs": 10,
    "staircase": True,
    "threshold": "absolute:0.01",  # row 4
    "p0": 0.5,
    "score_scale": "xavier",
    "score_distribution": "uniform",
    "loss": "log_softmax",
    "order": "reshuffle",  # row 22
    "precision": "float32",
}

_MASKED: dict[str, Any] = {
    "init": "elus",
    "weight_distribution": "signed_constant",
    "learning_rate": 0.05,
    "weight_decay": 5e-4,
    "epochs": 100,
}

_BASELINE: dict[str, Any] = {
    "init": "elu",
    "weight_distribution": "uniform",
    "learning_rate": 0.008,  # row 10
    "weight_decay": 7e-4,
    "epochs": 50,
}

# What a preset changes, by model and method.
_CHANGES: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("fcn", "paper"): {method: {"order": "fixed"} for method in METHODS},
    ("fcn", "code"): {
        method: {
            "loss": "clipped",  # row 7
            "decay_rate": 0.9,  # row 3: the released program's default
            "staircase": False,
            **(
                {
                    "baseline": {"learning_rate": 0.01, "weight_decay": 5e-4},  # row 10
                    "signed": {"threshold": "fraction_of_max:0.4"},  # row 4
                }.get(method, {})
            ),
        }
        for method in METHODS
    },
}

# On the 5,000 digits an epoch has so few steps that the recipe of the full set would stop half way: smaller batches,
# twice the epochs and the decay, and rates that end near 0, which steadies the last epochs (docs/recipes.md).
_MNIST5K: dict[str, dict[str, Any]] = {
    "signed": {"epochs": 200, "batch_size": 64, "weight_decay": 1e-3, "decay_steps": 2000, "decay_rate": 0.5},
    "binary": {"epochs": 200, "batch_size": 64, "weight_decay": 1e-3, "decay_steps": 2000, "decay_rate": 0.5},
    "baseline": {"batch_size": 64, "decay_steps": 2000},
}

# ELUS as a factor on He (row 21).
ELUS_FACTOR: Mapping[str, float] = {"fcn": math.sqrt(3)}

# The data set of each model, and what else it can be trained on.
MODEL_DATA: Mapping[str, tuple[str, ...]] = {"fcn": ("mnist", "fashion_mnist", "mnist5k")}


def recipe(model: str, method: str, preset: str, dataset: str) -> dict[str, Any]:
    """Return the option values of a preset; `mnist5k` has a recipe of its own under the preset `default`."""
    values = _COMMON | (_BASELINE if method == "baseline" else _MASKED)
    values |= _CHANGES.get((model, preset), {}).get(method, {})
    if dataset == "mnist5k" and preset == "default":
        values |= _MNIST5K[method]
    return values
