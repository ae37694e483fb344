"""The resolved configuration of a run: every value that decides its numbers, and nothing else."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from ssm import thresholds
from ssm.errors import UserError
from ssm.models import MODELS
from ssm.presets import ELUS_FACTOR, INITS, METHODS, MODEL_DATA, PRESETS, recipe


@dataclass(frozen=True, kw_only=True)
class Config:
    """What decides a seed's result; seeds, paths and the way seeds are run are not part of it.

    `decay_steps` is the schedule's unit in optimiser steps; `factor` multiplies the scale of He and ELUS, and
    `p0` is the hidden share that the paper's own formula assumes (init `paper_formula`).
    Raises UserError for unknown names and impossible values.
    """

    model: str
    method: Literal["signed", "binary", "baseline"]
    init: Literal["elus", "he", "xavier", "elu", "paper_formula"]
    preset: Literal["default", "paper", "code"]
    dataset: str
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    decay: Literal["decoupled", "coupled"]
    decay_rate: float
    decay_steps: float
    staircase: bool
    momentum: float
    nesterov: bool
    threshold: str
    weight_distribution: Literal["signed_constant", "uniform", "normal"]
    factor: float
    p0: float
    score_scale: Literal["elus", "he", "xavier", "elu"]
    score_distribution: Literal["signed_constant", "uniform", "normal"]
    loss: Literal["log_softmax", "clipped"]
    order: Literal["reshuffle", "fixed"]
    precision: Literal["float32", "bfloat16"]

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if get_origin(field.type) is Literal:
                _known(field.name, value, get_args(field.type))
        _known("model", self.model, tuple(MODELS))
        for name in ("epochs", "batch_size"):
            _positive(name, getattr(self, name), whole=True)
        for name in ("learning_rate", "decay_rate", "decay_steps", "factor"):
            _positive(name, getattr(self, name))
        for name, top in (("weight_decay", 1.0), ("momentum", 1.0), ("p0", 1.0)):
            value = getattr(self, name)
            if not (math.isfinite(value) and 0 <= value < top):
                raise UserError(f"{_flag(name)} must lie in [0, {top:g}); got {value}.")
        thresholds.parse(self.threshold)

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration as plain JSON values."""
        return dataclasses.asdict(self)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _known(name: str, value: Any, known: tuple[Any, ...]) -> None:
    if value not in known:
        raise UserError(f"{_flag(name)}={value} is not known; choose one of: {', '.join(map(str, known))}.")


def _positive(name: str, value: float, *, whole: bool = False) -> None:
    if not (math.isfinite(value) and value > 0 and (not whole or value == int(value))):
        raise UserError(f"{_flag(name)} must be a {'whole ' if whole else ''}number above 0; got {value}.")


def resolve(
    *, model: str, method: str, preset: str, dataset: str, samples: int, overrides: Mapping[str, Any]
) -> Config:
    """Return the configuration of a preset with the user's own values in place of the preset's.

    `samples` is the number of training images; `overrides` maps option names to values, None meaning the preset's.
    Raises UserError for unknown names and combinations that can't work.
    """
    _known("model", model, tuple(MODELS))
    _known("method", method, METHODS)
    _known("preset", preset, PRESETS)
    if not dataset.startswith("tfds:") and dataset not in MODEL_DATA[model]:
        raise UserError(
            f"--model={model} is not made for --dataset={dataset}; it takes "
            f"{', '.join(MODEL_DATA[model])} or tfds:NAME."
        )
    values = recipe(model, method, preset, dataset)
    given = {name: value for name, value in overrides.items() if value is not None}
    if "decay_epochs" in given:
        values.pop("decay_steps", None)  # what the user says outdoes a preset's unit
    values |= given
    _known("init", values["init"], INITS)
    for name, why in _idle(method, values["init"]).items():
        if name in given:
            raise UserError(f"{_flag(name)} has no effect on {why}; leave it out.")
    if isinstance(values["batch_size"], int) and values["batch_size"] > samples:
        raise UserError(
            f"--batch-size={values['batch_size']} is larger than the data set: {dataset} has {samples} training images."
        )
    _positive("batch_size", values["batch_size"], whole=True)
    decay_epochs = values.pop("decay_epochs")
    _positive("decay_epochs", decay_epochs)
    values.setdefault("decay_steps", decay_epochs * math.ceil(samples / values["batch_size"]))
    values.setdefault("factor", ELUS_FACTOR[model] if values["init"] == "elus" else 1.0)
    return Config(model=model, method=method, preset=preset, dataset=dataset, **values)  # type: ignore[arg-type]


def _idle(method: str, init: str) -> dict[str, str]:
    """Return the options that a method and an initialisation take no notice of, and why."""
    idle = {}
    if init not in ("elus", "he"):
        idle["factor"] = f"--init={init}"
    if init != "paper_formula":
        idle["p0"] = f"--init={init}"
    if method == "baseline":
        idle |= dict.fromkeys(("threshold", "score_scale", "score_distribution"), "the baseline, which has no mask")
    return idle


MOST_SEEDS = 100_000


def parse_seeds(text: str) -> list[int]:
    """Return the seeds that a text names: `50` is 0 to 49, `10:20` is 10 to 19, `3,7` is just those two."""
    try:
        if "," in text:
            seeds = {int(part) for part in text.split(",") if part.strip()}
        else:
            first, _, last = text.rpartition(":")
            span = range(int(first or 0), int(last))
            # Compared by ends, as len() fails beyond 2**63: what has too many seeds is not worth a list of them.
            seeds = set(span) if span.stop - span.start <= MOST_SEEDS else set()
    except ValueError:
        seeds = set()
    if not seeds or min(seeds) < 0 or max(seeds) >= 2**31:
        raise UserError(
            f"--seeds={text} names no seeds; write 50 (0 to 49), 10:20 (10 to 19) or 3,7 (those two), below 2**31, and "
            f"at most {MOST_SEEDS:,} at once."
        )
    return sorted(seeds)
