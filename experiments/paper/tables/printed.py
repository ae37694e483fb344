"""The paper's printed numbers, and the row that a run belongs to."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ssm.data.published import STAND_INS
from ssm.errors import UserError
from ssm.files import read_json
from ssm.recipes.literature import LITERATURE
from ssm.recipes.presets import NEUTRAL, recipe

Record = dict[str, Any]

# Our names where the paper's rows use others.
METHODS = {"signed": "signed_supermask", "binary": "binary_supermask"}
SHORT = {long: short for short, long in METHODS.items()}
_NEUTRAL = ("width", "batch_norm", "projections", "density", "activation", "validation")
_USUAL: Record = {name: NEUTRAL[name] for name in _NEUTRAL} | {"score_scale": "xavier"}
SETTINGS = (*_USUAL, "weight_distribution")
"""The settings that choose a run's row in the paper, beside model, method, init and data set."""
OWN_ORDERS = "own_orders"
"""Stands among the changed settings of a run whose seeds have a fixed order each, where its preset has one for all."""
# Separate recipes, without a row in the paper.
WITHOUT_ROW = ("sinn1", "sinn2", "best")

TRAINING_IMAGES: Mapping[str, int] = {"mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000}
"""Of the paper's data sets: an epoch's steps, and with them the time of the decay, follow from it."""

_SECTIONS = ("weights", "sinn", "hyperparameters", "architectures", "literature_cifar10", "supermask_literature")


def read_paper(path: str | os.PathLike[str]) -> list[Record]:
    """Read the rows of paper.json.

    Raises:
        UserError: naming the file, if it is missing or damaged.
    """
    paper = read_json(path)
    try:
        rows = paper["rows"]
        _ = [(row["table"], row["model"], row["method"], row["init"], row["test_accuracy_percent"]) for row in rows]
    except (KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: not the paper's rows ({error!r})") from error
    return rows


def read_printed(path: str | os.PathLike[str]) -> Record:
    """Read all of paper.json: its rows, and the paper's other printed numbers, by section.

    Raises:
        UserError: naming the file, if it is missing or damaged, or lacks a section.
    """
    read_paper(path)
    paper = read_json(path)
    missing = [section for section in _SECTIONS if section not in paper]
    if missing:
        raise UserError(f"{path} is damaged: it has no {', '.join(missing)}")
    return paper


def with_config(summary: Mapping[str, Any], config: Mapping[str, Any]) -> Record:
    """Return a run's summary with the configuration values that choose its row in the paper.

    `changed` are the settings, if any, in which it differs from its preset's recipe as it is now.
    """
    return {**summary, **_settings({"method": summary["method"], **config}), "changed": _changed(config)}


def _changed(config: Mapping[str, Any]) -> list[str]:
    try:
        usual = recipe(*(config[name] for name in ("model", "method", "preset", "dataset")))
    except (KeyError, UserError):
        return []
    own = set(SETTINGS) | {"init"}
    usual |= _following(config, usual)
    names = {name for name, value in usual.items() if name not in own and config.get(name, value) != value}
    if (usual["order"], config.get("order")) == ("fixed", "fixed_by_seed"):
        names = names - {"order"} | {OWN_ORDERS}
    return sorted(names)


def _following(config: Mapping[str, Any], usual: Mapping[str, Any]) -> Record:
    """Return what follows from other settings of a run, as `ssm.recipes.config.resolve` has it, for which JAX loads."""
    found: Record = {"factor": usual["elus_factor"] if config.get("init") == "elus" else 1.0}
    if usual["p0"] is None and "density" in config:
        found["p0"] = 1 - config["density"]
    if (images := TRAINING_IMAGES.get(config["dataset"])) and "batch_size" in config and "decay_steps" not in usual:
        images = config.get("train_images") or images - config.get("validation", 0)
        timed = config.get("schedule") in ("cosine", "steps")
        every = config.get("epochs") if timed else usual["decay_epochs"]
        found["decay_steps"] = every * usual["passes"] * -(-images // config["batch_size"])
    if (method := LITERATURE.get(config["method"])) and "method_options" in config:
        timed = {"pretrained", *method.timed(1, 1)}  # by the length of the training
        given = dict(part.split("=", 1) for part in config["method_options"].split(",") if part)
        theirs = dict(part.split("=", 1) for part in usual["method_options"].split(",") if part)
        same = {name: value for name, value in given.items() if name not in timed - set(theirs)} == theirs
        found["method_options"] = config["method_options"] if same else usual["method_options"]
    return found


def decimals(numbers: Iterable[float | None]) -> int:
    """Return the most digits behind the point that one of several printed numbers has; JSON has no zeros at ends."""
    return max((len(f"{number:g}".partition(".")[2]) for number in numbers if number is not None), default=0)


def paper_row(summary: Mapping[str, Any], rows: Sequence[Record]) -> Record | None:
    """Return the first of the paper's rows that fits a run (see `with_config`), or None.

    It has the run's model, width, projection blocks, batch normalisation, activation, method, and scales of weights and
    scores, no density that was asked for and no images held out, and the run's data set, or the one that this replaces:
    then the figures are not comparable.
    """
    if summary["preset"] in WITHOUT_ROW:
        return None
    data = dataset(summary)
    wanted = identity({**summary, "method": METHODS.get(summary["method"], summary["method"])})
    wanted["dataset"] = STAND_INS.get(data, data)
    return next((row for row in rows if identity(row) == wanted), None)


def select(rows: Sequence[Record], wanted: Sequence[Mapping[str, Any]]) -> list[Record]:
    """Return the paper's row for each of these models, methods, inits and, where not usual, other settings.

    Raises:
        UserError: naming a row that paper.json lacks.
    """
    found = []
    for keys in wanted:
        named = {**keys, "method": METHODS.get(keys["method"], keys["method"])}
        whole = named | _settings(named)
        row = next((row for row in rows if whole.items() <= {**row, **_settings(row)}.items()), None)
        if row is None:
            raise UserError(f"paper.json is damaged: it has no row of {dict(keys)}")
        found.append(row)
    return found


def identity(row: Mapping[str, Any]) -> Record:
    """Return the values that identify a row of the paper, or a run."""
    return {**{name: row.get(name) for name in ("model", "method", "init", "dataset")}, **_settings(row)}


def usual(method: str) -> Record:
    """Return the default settings of this method, for rows, and runs older than an option, that do not state them."""
    return {**_USUAL, "weight_distribution": "uniform" if method == "baseline" else "signed_constant"}


def _settings(row: Mapping[str, Any]) -> Record:
    return {name: row.get(name, value) for name, value in usual(row["method"]).items()}


def dataset(summary: Mapping[str, Any]) -> str:
    """Return the name of a run's data set without its source."""
    return summary["dataset"].removeprefix("tfds:")
