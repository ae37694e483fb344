"""The one exception that a user is meant to see, and the check that raises it most."""

from collections.abc import Callable
from numbers import Real
from typing import Any


class UserError(Exception):
    """Says what was wrong with the input and what to do; the programs print it and exit with status 2."""


def require(value: Any, name: str, range_: str, holds: Callable[[Any], bool]) -> None:
    """Raise UserError unless a number is in its range; a traced value can't be looked at and passes."""
    if isinstance(value, Real) and not holds(value):
        raise UserError(f"{name} must be {range_}, got {value}")
