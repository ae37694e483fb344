"""The exception meant for users, and the range check that raises it."""

import inspect
from collections.abc import Callable
from numbers import Real
from typing import Any


class UserError(Exception):
    """An error in the input, with what to do about it; the programs print it and exit with status 2."""


class LeftOut(UserWarning):
    """A damaged run among many is left out; the programs print the message alone."""


def require_function(value: Any, name: str, example: str, arguments: int) -> None:
    """Raise UserError unless a value is a function, or called like one, that takes so many positional arguments."""
    if not callable(value):
        raise UserError(f"{name} must be a function, {example} say; got {value!r}.")
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # of some built-in functions it is not known
        return
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = sum(one.default is one.empty for one in positional)
    any_more = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if needed > arguments or (len(positional) < arguments and not any_more):
        raise UserError(f"{name} must take {arguments} arguments, as {example} does; got {value!r}.")


def require(value: Any, name: str, range_: str, holds: Callable[[Any], bool]) -> None:
    """Raise UserError unless a value is a number in its range; a traced one has no known value and passes."""
    if isinstance(value, Real):
        if not holds(value):
            raise UserError(f"{name} must be {range_}, got {value}")
    elif not hasattr(value, "dtype"):
        raise UserError(f"{name} must be a number {range_}, got {value!r}")
