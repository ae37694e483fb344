"""Recipes beside `--preset=best`: fronts of it and of `default`, the dense net, the parts of `best` one by one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Part = Literal["front", "alone", "last"]
BEST, DEFAULT, DENSE = "best", "default", "dense net, as best"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A row of the table: a preset, and options beside it.

    part: `front` (a point of accuracy against density), `alone` (`default` with one part of `best`), or `last`
    (`best` without this part).
    """

    name: str
    part: Part = "front"
    preset: str = "best"
    method: str = "signed"
    seeds: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)


MARKS = (None, 3.6e-3)
"""Weight decays of `best` that have ten seeds: the preset's own, for 2 % of the weights, and one for 1.4 %."""
FRONTS: Mapping[str, tuple[str, tuple[float | None, ...]]] = {
    BEST: ("best", (3e-4, 7e-4, 1.2e-3, *MARKS, 5e-3, 1e-2, 1.8e-2, 4e-2)),
    DEFAULT: ("default", (8e-5, 1.5e-4, 3e-4, None, 1e-3, 2e-3, 4e-3, 1e-2, 3e-2, 4e-2)),
}
"""Presets with their weight decays: from some 10 % of the weights to 0.3."""
PARTS: Mapping[str, tuple[str, ...]] = {
    "constant": ("factor",),
    "cosine": ("schedule",),
    "shifts": ("augment",),
    "200 epochs": ("epochs",),
    "rate and decay": ("learning_rate", "weight_decay"),
}
"""What `best` changes in the FCN's `default`, by option."""
CONV_PARTS: Mapping[str, tuple[str, ...]] = {
    "constant": ("factor",),
    "cosine": ("schedule",),
    "crops and flips": ("augment",),
    "rate": ("learning_rate",),
}
"""The same of a Conv net, besides the epochs, which all its rows have in common."""


def recipes(model: str = "fcn") -> list[Recipe]:
    """Return the rows of a net's table: of the FCN, or of a Conv net with one seed a row."""
    from ssm.recipes.presets import MODEL_DATA, recipe

    best, default = (recipe(model, "signed", preset, MODEL_DATA[model][0]) for preset in ("best", "default"))
    rows = [*_fronts(), *_parts(PARTS, best, default)] if model == "fcn" else _conv_net(best, default)
    return sorted(rows, key=lambda row: row.part == "last")


def _conv_net(best: Mapping[str, Any], default: Mapping[str, Any]) -> list[Recipe]:
    rows = [Recipe(name=BEST), Recipe(name=DEFAULT, preset="default"), Recipe(name=DENSE, method="baseline")]
    epochs = {"epochs": best["epochs"]}
    return [
        replace(row, seeds=1, options={**epochs, **row.options}) for row in rows + _parts(CONV_PARTS, best, default)
    ]


def _fronts() -> list[Recipe]:
    """Return the points of the FCN's fronts, and the dense net."""
    rows = [
        Recipe(name=name, preset=preset, options=_decay(value), seeds=10 if preset == "best" and value in MARKS else 3)
        for name, (preset, values) in FRONTS.items()
        for value in values
    ]
    return [*rows, Recipe(name=DENSE, method="baseline", seeds=10)]


def _parts(parts: Mapping[str, tuple[str, ...]], best: Mapping[str, Any], default: Mapping[str, Any]) -> list[Recipe]:
    """Return `default` with each part of `best` alone, and `best` without it; from the presets' values.

    What both have alike is no part.
    """
    rows = []
    for name, options in parts.items():
        added, without = ({option: _value(values, option) for option in options} for values in (best, default))
        if added == without:
            continue
        rows.append(Recipe(name=f"{DEFAULT}, and {name}", part="alone", preset="default", options=added))
        rows.append(Recipe(name=f"{BEST} without {name}", part="last", options=without))
    return rows


def _decay(value: float | None) -> dict[str, float]:
    return {} if value is None else {"weight_decay": value}


def _value(values: Mapping[str, Any], option: str) -> Any:
    """Return a preset's value by the name of the option."""
    return values["elus_factor" if option == "factor" else option]
