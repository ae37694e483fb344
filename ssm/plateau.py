"""Reduction of the learning rate on a plateau of the loss, for one seed, on the host between epochs."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from ssm.errors import UserError, require

Kind = Literal["plateau", "authors_plateau"]
_AUTHORS_FIRST_EPOCH = 10  # counted from 0: the eleventh loss is the first that their rule considers


@dataclass(frozen=True, kw_only=True)
class PlateauRule:
    """When to reduce, and by which factor; learning rate and weight decay are both multiplied by the state's scale.

    `plateau` is the usual rule: a loss improves if it is below the best so far by more than `min_delta`; after
    `patience` epochs in a row without improvement the scale is multiplied by `factor`, and the next `cooldown` epochs
    are not counted.  Source: optax.contrib.reduce_on_plateau, with rtol 0 and atol `min_delta`.

    `authors_plateau` is the rule of the authors' program: a loss improves if, plus `min_delta`, it is below the best
    of the `patience` - 2 losses just before it; any other loss from the eleventh epoch on adds 1 to a count that is
    never reset; if the count is then above `patience`, the scale is multiplied by `factor`, and the next `cooldown`
    epochs are skipped.  Source: docs/ledger.md, row 13.

    Training stops after `reductions`, 0 meaning never.  Raises UserError for impossible values.
    """

    kind: Kind = "plateau"
    factor: float = 0.2
    patience: int = 15
    cooldown: int = 10
    min_delta: float = 1e-4
    reductions: int = 0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UserError(f"kind must be one of {', '.join(get_args(Kind))}, got {self.kind}")
        require(self.factor, "factor", "in (0, 1)", lambda value: 0 < value < 1)
        least = 3 if self.kind == "authors_plateau" else 1  # below 3 there is no loss to compare with
        require(self.patience, "patience", f"at least {least}", lambda value: value >= least)
        require(self.cooldown, "cooldown", "at least 0", lambda value: value >= 0)
        require(self.min_delta, "min_delta", "finite and at least 0", lambda value: 0 <= value < math.inf)
        require(self.reductions, "reductions", "at least 0", lambda value: value >= 0)


class PlateauState(NamedTuple):
    """The state carried between epochs: numbers, None and one list, so that `PlateauState(*json.loads(...))` works.

    `scale` is the product of the factors so far, and `epoch` the number of losses seen.  `wait` counts losses without
    improvement, `cooldown` the epochs still to be skipped.  `best` is the lowest loss so far, and `recent` the last
    losses, None for one that is not finite; each rule keeps only the one that it uses.
    """

    scale: float
    reductions: int
    epoch: int
    wait: int
    cooldown: int
    best: float | None
    recent: list[float | None]


def start() -> PlateauState:
    """Return the state before the first epoch."""
    return PlateauState(scale=1.0, reductions=0, epoch=0, wait=0, cooldown=0, best=None, recent=[])


def update(rule: PlateauRule, state: PlateauState, loss: float) -> PlateauState:
    """Return the state after an epoch with this loss; a loss that is not finite is no improvement.

    The state passed in is not changed.
    """
    # Strict JSON has no NaN, and in their comparison a NaN would mask the finite losses beside it.
    known = float(loss) if math.isfinite(loss) else None
    after = _usual(rule, state, known) if rule.kind == "plateau" else _authors(rule, state, known)
    return after._replace(epoch=state.epoch + 1)


def stopped(rule: PlateauRule, state: PlateauState) -> bool:
    """Return whether the state has had as many reductions as end training."""
    return 0 < rule.reductions <= state.reductions


def _usual(rule: PlateauRule, state: PlateauState, loss: float | None) -> PlateauState:
    improved = loss is not None and (state.best is None or loss < state.best - rule.min_delta)
    if improved:
        state = state._replace(best=loss)  # in cooldown too
    if state.cooldown > 0:
        return state._replace(wait=0, cooldown=state.cooldown - 1)
    wait = 0 if improved else state.wait + 1
    return _reduced(rule, state._replace(wait=0)) if wait >= rule.patience else state._replace(wait=wait)


def _authors(rule: PlateauRule, state: PlateauState, loss: float | None) -> PlateauState:
    best = min((value for value in state.recent if value is not None), default=math.inf)
    state = state._replace(recent=[*state.recent, loss][2 - rule.patience :])
    if state.epoch < _AUTHORS_FIRST_EPOCH:
        return state
    if state.cooldown > 0:
        return state._replace(cooldown=state.cooldown - 1)
    if loss is not None and loss + rule.min_delta < best:
        return state
    state = state._replace(wait=state.wait + 1)
    return _reduced(rule, state) if state.wait > rule.patience else state


def _reduced(rule: PlateauRule, state: PlateauState) -> PlateauState:
    return state._replace(scale=state.scale * rule.factor, reductions=state.reductions + 1, cooldown=rule.cooldown)
