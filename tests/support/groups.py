"""Groups of seeds trained together, with what they end with by seed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import chex
import jax
import numpy as np

from ssm.recipes import build
from ssm.recipes.config import Config
from ssm.training.loop import Member, Outcome, Trainer, beginning, train_members


class Result(NamedTuple):
    """What a group ends with; `masks`, `params` and `values` are those of the seeds that were not excluded."""

    history: list[dict[str, Any]]
    finals: list[dict[str, Any]]
    masks: dict[int, dict[str, np.ndarray]]
    params: dict[int, Any]
    variables: dict[int, Any]
    values: dict[int, dict[str, np.ndarray]]


def as_result(outcomes: Sequence[Outcome]) -> Result:
    """Return the outcomes of different seeds as one result."""
    whole = {one.final["seed"]: one for one in outcomes if one.masks is not None}
    return Result(
        [row for one in outcomes for row in one.history],
        [one.final for one in outcomes],
        {seed: one.masks for seed, one in whole.items() if one.masks is not None},
        {seed: one.variables["params"] for seed, one in whole.items()},
        {seed: one.variables for seed, one in whole.items()},
        {seed: one.values for seed, one in whole.items()},
    )


def members_of(config: Config, seeds: Sequence[int]) -> list[Member]:
    return [build.member(config, seed) for seed in seeds]


def train(trainer: Trainer, members: Sequence[Member], *report: Any) -> Result:
    """Train members to the end."""
    return as_result(train_members(trainer, members, *report, variables=True))


def begun(trainer: Trainer, members: Sequence[Member]) -> Any:
    """Return the state that members begin with, on the devices."""
    return trainer.program.start(trainer.program.place(beginning(members)))


def rows_of(result: Result, seed: int) -> list[dict[str, Any]]:
    return [row for row in result.history if row["seed"] == seed]


def same(one: Result, other: Result, seed: int) -> None:
    """Say that a seed is the same in two results, bit for bit, but for the seconds."""
    chex.assert_trees_all_equal(one.masks[seed], other.masks[seed])
    chex.assert_trees_all_equal(one.params[seed], other.params[seed])
    for left, right in zip(rows_of(one, seed), rows_of(other, seed), strict=True):
        assert {**left, "seconds": 0} == {**right, "seconds": 0}


def with_start(trainer: Trainer, change: Any) -> Trainer:
    """Return the trainer whose groups begin with what `change` makes of their states, given what they begin with."""

    def start(begin: Any) -> Any:
        return change(trainer.program.start(begin), begin)

    return trainer._replace(program=trainer.program._replace(start=start))


def with_layers(state: Any, **changed: Any) -> Any:
    """Return the state with other params of some layers, named without `/kernel`."""
    layers = {**state.params.layers, **{f"{name}/kernel": leaf for name, leaf in changed.items()}}
    return state._replace(params=state.params._replace(layers=layers))


def one_device() -> list[Any]:
    return jax.devices()[:1]
