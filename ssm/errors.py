"""The exception meant for users, and the range check that raises it."""

from collections.abc import Callable
from numbers import Real
from typing import Any


class UserError(Exception):
    """An error in the input, with what to do about it; the programs print it and exit with status 2."""


class LeftOut(UserWarning):
    """A damaged run among many is left out; the programs print the message alone."""


def require_function(value: Any, name: str, example: str) -> None:
    """Raise UserError unless a value is a function, or called like one."""
    if not callable(value):
        raise UserError(f"{name} must be a function, {example} say; got {value!r}.")


def require(value: Any, name: str, range_: str, holds: Callable[[Any], bool]) -> None:
    """Raise UserError unless a number is in its range; a traced value has no known value and passes."""
    if isinstance(value, Real) and not holds(value):
        raise UserError(f"{name} must be {range_}, got {value}")
