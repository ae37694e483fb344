"""Recipes beside `--preset=best`: fronts of it and of `default`, the dense net, the parts of `best` one by one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    DEFAULT: ("default", (1.5e-4, 3e-4, None, 1e-3, 2e-3, 4e-3, 1e-2, 3e-2)),
}
"""Presets with their weight decays: from some 10 % of the weights to 0.3."""
PARTS: Mapping[str, tuple[str, ...]] = {
    "constant": ("factor",),
    "cosine": ("schedule",),
    "shifts": ("augment",),
    "200 epochs": ("epochs",),
    "rate and decay": ("learning_rate", "weight_decay"),
}
"""What `best` changes in `default`, by option."""


def recipes() -> list[Recipe]:
    """Return the rows of the FCN's table."""
    best, default = (_options(preset) for preset in ("best", "default"))
    rows = [
        Recipe(name=name, preset=preset, options=_decay(value), seeds=10 if preset == "best" and value in MARKS else 3)
        for name, (preset, values) in FRONTS.items()
        for value in values
    ]
    rows.append(Recipe(name=DENSE, method="baseline", seeds=10))
    for name, options in PARTS.items():
        added, without = ({option: values[option] for option in options} for values in (best, default))
        rows.append(Recipe(name=f"{DEFAULT}, and {name}", part="alone", preset="default", options=added))
        rows.append(Recipe(name=f"{BEST} without {name}", part="last", options=without))
    return sorted(rows, key=lambda row: row.part == "last")


def _decay(value: float | None) -> dict[str, float]:
    return {} if value is None else {"weight_decay": value}


def _options(preset: str) -> dict[str, Any]:
    """Return a preset's values of the FCN by the names of options."""
    from ssm.recipes.presets import recipe

    values = recipe("fcn", "signed", preset, "mnist")
    return values | {"factor": values["elus_factor"]}
