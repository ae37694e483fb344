"""The resolved configuration of a run: every value that decides its numbers, and nothing else."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from ssm import thresholds
from ssm.errors import UserError
from ssm.recipes.literature import LITERATURE, STEERED, learned_by, meant
from ssm.recipes.method_options import parsed_options, timed_options, written_options
from ssm.recipes.presets import (
    BLOCKS,
    COMPARED,
    DATA_CLASSES,
    INITS,
    METHODS,
    NET_DATA,
    OWN,
    PRESETS,
    kind,
    recipe,
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """What decides a seed's result; seeds, paths and the way seeds are run are not part of it.

    `width` multiplies the sizes of all layers but the last; `projections` counts the projection blocks of each stage of
    a ResNet.  `passes` over the data are one epoch.  `decay_steps` is the exponential schedule's unit in optimiser
    steps, and all of them under a cosine schedule or `steps`.  A plateau schedule stops training after `reductions`, 0
    meaning never.  `factor` multiplies the scale of He and ELUS, and `p0` is the hidden share that the paper's
    own formula assumes (init `paper_formula`).  A model of one's own is `package.module:Name`, and so is `learner`,
    empty otherwise.  `density` is the share of weights that a method with such a dial keeps, 0 otherwise, and
    `method_options` are its other options, NAME=VALUE,...  A cosine schedule ends at 0 `cycles` times; `steps`
    multiplies the rate by `decay_rate` at each of the `milestones`, shares of all epochs.  The last `validation`
    training images take the place of the test set; of what is left the first `train_images` are trained on, 0 meaning
    all.
    Raises UserError for unknown names and impossible values.
    """

    model: str
    method: str
    init: Literal["elus", "he", "xavier", "elu", "paper_formula"]
    preset: Literal["default", "paper", "code", "sinn1", "sinn2", "best", "protocol", "published"]
    dataset: str
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    decay: Literal["decoupled", "coupled"]
    schedule: Literal["exponential", "plateau", "authors_plateau", "cosine", "steps"]
    decay_rate: float
    decay_steps: float
    staircase: bool
    patience: int
    plateau_factor: float
    cooldown: int
    min_delta: float
    reductions: int
    momentum: float
    nesterov: bool
    threshold: str
    weight_distribution: Literal["signed_constant", "uniform", "normal"]
    factor: float
    p0: float
    score_scale: Literal["elus", "he", "xavier", "elu"]
    score_distribution: Literal["signed_constant", "uniform", "normal"]
    loss: Literal["log_softmax", "clipped", "squared_hinge"]
    order: Literal["reshuffle", "fixed", "fixed_by_seed"]
    passes: int
    augment: Literal["none", "shift", "crop_flip", "crop_flip_standardize"]
    precision: Literal["float32", "bfloat16", "tf32", "tf32x3"]
    width: float
    projections: int
    batch_norm: Literal["none", "frozen", "statistics", "affine"]
    stem_affine: bool
    learner: str
    density: float = 0.0
    method_options: str = ""
    optimizer: Literal["sgd", "adam"] = "sgd"
    cycles: int = 1
    milestones: str = ""
    validation: int = 0
    train_images: int = 0
    activation: Literal["elu", "relu", "sign"] = "elu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if get_origin(field.type) is Literal:
                _known(field.name, value, get_args(field.type))
        _known_model(self.model)
        _known("method", self.method, (*METHODS, OWN, *LITERATURE))
        for name in ("epochs", "passes", "batch_size", "patience", "projections", "cycles"):
            _positive(name, getattr(self, name), whole=True)
        for name in ("learning_rate", "decay_rate", "decay_steps", "factor", "width"):
            _positive(name, getattr(self, name))
        for name in ("cooldown", "reductions", "validation", "train_images"):
            _natural(name, getattr(self, name))
        if not 0 <= self.density <= 1:
            raise UserError(f"--density must lie in (0, 1]; got {self.density}.")
        for name, top in (("weight_decay", 1.0), ("momentum", 1.0), ("p0", 1.0), ("dropout", 1.0)):
            value = getattr(self, name)
            if not (math.isfinite(value) and 0 <= value < top):
                raise UserError(f"{_flag(name)} must lie in [0, {top:g}); got {value}.")
        if not 0 < self.plateau_factor < 1:
            raise UserError(f"--plateau-factor must lie in (0, 1); got {self.plateau_factor}.")
        if not (math.isfinite(self.min_delta) and self.min_delta >= 0):
            raise UserError(f"--min-delta must be a number at or above 0; got {self.min_delta}.")
        if self.schedule == "authors_plateau" and self.patience < 3:
            raise UserError(
                f"--schedule=authors_plateau compares with the best of --patience minus 2 losses; got "
                f"--patience={self.patience}, give at least 3."
            )
        rule = thresholds.parse(self.threshold)
        if self.density and self.method in ("signed", STEERED) and thresholds.parameter(rule) == 0:
            raise UserError(f"--density steers a threshold above 0; got --threshold={self.threshold}.")
        milestones_of(self.milestones)
        _check_net(self)
        _check_own(self)

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration as plain JSON values."""
        return dataclasses.asdict(self)


def milestones_of(text: str) -> list[float]:
    """Return the shares of all epochs that a text names, `0.6,0.85`; raises UserError for what are none."""
    try:
        shares = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        shares = [math.nan]
    if not all(0 < share < 1 for share in shares) or shares != sorted(shares):
        raise UserError(f"--milestones={text} must be rising shares of the epochs, 0.6,0.85 say.")
    return shares


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _known(name: str, value: Any, known: tuple[Any, ...]) -> None:
    if value not in known:
        raise UserError(f"{_flag(name)}={value} is not known; choose one of: {', '.join(map(str, known))}.")


def _known_model(model: str) -> None:
    if model not in NET_DATA and kind(model) != OWN:
        known = ", ".join(NET_DATA)
        raise UserError(f"--model={model} is not known; choose one of: {known}, or your own as package.module:Name.")


def _natural(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0 and value == int(value)):
        raise UserError(f"{_flag(name)} must be a whole number at or above 0; got {value}.")


def _check_net(config: Config) -> None:
    """Raise UserError where a net's shape options don't fit its model."""
    model, projections = config.model, config.projections
    fits = ("frozen", "statistics", "affine") if model in BLOCKS else ("none", "statistics", "affine")
    if config.batch_norm not in fits or (kind(model) == OWN and config.batch_norm != "none"):
        fits = "none" if kind(model) == OWN else " or ".join((", ".join(fits[:-1]), fits[-1]))
        raise UserError(f"--batch-norm={config.batch_norm} does not fit --model={model}, which takes {fits}.")
    if projections not in (1, 2):
        raise UserError(f"--projections must be 1 or 2; got {projections}.")
    if projections == 2 and BLOCKS.get(model, 1) % 2:
        even = ", ".join(name for name, blocks in BLOCKS.items() if blocks % 2 == 0)
        raise UserError(
            f"--projections=2 needs an even number of residual blocks per stage, as in {even}; "
            f"--model={model} has {BLOCKS.get(model, 'none')}, so leave it at 1."
        )


def _check_own(config: Config) -> None:
    """Raise UserError where a net or learner of the user's own is asked for what it can't do."""
    if (config.method == "own") != bool(config.learner):
        raise UserError("--learner=package.module:factory goes with --method=own, which train.py takes by itself.")
    if kind(config.model) == OWN and config.precision != "float32":
        raise UserError(f"--precision={config.precision} is for the built-in nets; leave it out for your own.")


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
    _known_model(model)
    _known("method", method, (*METHODS, OWN, *LITERATURE))
    _known("preset", preset, (*PRESETS, *COMPARED))
    method = meant(kind(model), method, preset, overrides.get("density"))
    if kind(model) != OWN and not dataset.startswith(("tfds:", "npz:", "idx:")) and dataset not in NET_DATA[model]:
        fitting = [name for name, sets in NET_DATA.items() if dataset in sets]
        raise UserError(
            f"--model={model} is not made for --dataset={dataset}; it takes {', '.join(NET_DATA[model])}, tfds:NAME, "
            "npz:FILE or idx:DIR" + (f", and {dataset} goes with {', '.join(fitting)}." if fitting else ".")
        )
    values = recipe(model, method, preset, dataset)
    given = {name: value for name, value in overrides.items() if value is not None}
    if "decay_epochs" in given:
        values.pop("decay_steps", None)  # what the user says outdoes a preset's unit
    options = parsed_options(values["method_options"]) | parsed_options(given.pop("method_options", ""))
    values |= given
    _known("init", values["init"], INITS)
    for name, why in _idle(model, method, values).items():
        if name in given:
            raise UserError(f"{_flag(name)} has no effect on {why}; leave it out.")
    for name in ("batch_size", "passes", "epochs"):
        _positive(name, values[name], whole=True)
    if not 0 <= values["validation"] < samples:
        raise UserError(f"--validation={values['validation']}: the data set has {samples} training images.")
    samples -= values["validation"]
    if not 0 <= values["train_images"] <= samples:
        raise UserError(
            f"--train-images={values['train_images']}: there are {samples} training images; "
            "take --train-images=0 for all."
        )
    samples = values["train_images"] or samples
    if values["batch_size"] > samples:
        raise UserError(
            f"--batch-size={values['batch_size']} is larger than the data set: {dataset} has {samples} training images."
        )
    decay_epochs, elus_factor = values.pop("decay_epochs"), values.pop("elus_factor")
    _positive("decay_epochs", decay_epochs)
    steps = values["passes"] * math.ceil(samples / values["batch_size"])
    if named := learned_by(method, values["density"]):
        options = timed_options(named, values["epochs"] * steps, steps) | options
    values["method_options"] = written_options(options)
    if values["p0"] is None:
        if not 0 < values["density"] <= 1:
            raise UserError(f"--density must lie in (0, 1]; got {values['density']}.")
        values["p0"] = 1 - values["density"]
    if values["schedule"] in ("cosine", "steps"):
        decay_epochs = values["epochs"]
    values.setdefault("decay_steps", decay_epochs * steps)
    values.setdefault("factor", elus_factor if values["init"] == "elus" else 1.0)
    return Config(model=model, method=method, preset=preset, dataset=dataset, **values)  # type: ignore[arg-type]


_PLATEAU = {"patience", "plateau_factor", "cooldown", "min_delta", "reductions"}
_SCHEDULES: Mapping[str, set[str]] = {
    "exponential": {"decay_rate", "decay_epochs", "staircase"},
    "plateau": _PLATEAU,
    "authors_plateau": _PLATEAU,
    "cosine": {"cycles"},
    "steps": {"decay_rate", "milestones"},
}
_SCHEDULED = set().union(*_SCHEDULES.values())
SCORED = (STEERED, "variable_threshold")
"""Methods of the related work whose scores start as the signed Supermask's."""


def _idle(model: str, method: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that a resolved recipe takes no notice of, and why."""
    init, schedule, batch_norm = values["init"], values["schedule"], values["batch_norm"]
    idle = {}
    if init not in ("elus", "he"):
        idle["factor"] = f"--init={init}"
    if init != "paper_formula":
        idle["p0"] = f"--init={init}"
    if method == "baseline":
        idle |= dict.fromkeys(("threshold", "score_scale", "score_distribution"), "the baseline, which has no mask")
    idle |= dict.fromkeys(_SCHEDULED - _SCHEDULES.get(schedule, _SCHEDULED), f"--schedule={schedule}")
    if method == "own":
        idle |= dict.fromkeys(("threshold", "score_scale", "score_distribution"), "a learner of your own")
    if method in LITERATURE and method != STEERED:
        idle["threshold"] = f"--method={method}"
    if method in LITERATURE and method not in SCORED:
        idle |= dict.fromkeys(("score_scale", "score_distribution"), f"--method={method}, whose scores are its own")
    if method not in ("signed", *LITERATURE) or (method in LITERATURE and not LITERATURE[method].dial):
        idle["density"] = f"--method={method}, which has no such dial"
    if values["optimizer"] == "adam":
        idle |= dict.fromkeys(("momentum", "nesterov"), "--optimizer=adam")
    if model != "wrn22_2":
        idle["dropout"] = f"--model={model}, which has none"
    if kind(model) == OWN:
        idle |= dict.fromkeys(("width", "batch_norm", "activation"), f"--model={model}, a net of your own")
    if model not in BLOCKS:
        none = f"--model={model}, which has no residual blocks"
        idle |= dict.fromkeys(("projections", "stem_affine"), none)
    elif batch_norm != "frozen":
        idle["stem_affine"] = f"--batch-norm={batch_norm}, which says by itself what is trained"
    return idle


def check_classes(classes: int | None, *, dataset: str, found: int | None = None) -> None:
    """Raise UserError unless a data set has the number of classes that the user asks for, if he asks for one.

    `found` is what the loaded data has; without it, only data sets of a known name are checked.
    """
    has = DATA_CLASSES.get(dataset) if found is None else found
    if classes is None or has is None or classes == has:
        return
    sets = [name for name, count in DATA_CLASSES.items() if count == classes]
    raise UserError(
        f"--classes={classes} does not fit --dataset={dataset}, which has {has} classes, an output for each; "
        "leave it out" + (f", or train on {', '.join(sets)}" if sets else "") + "."
    )


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
