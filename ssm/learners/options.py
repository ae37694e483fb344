"""Options of learners that are one of a few words."""

from collections.abc import Sequence
from typing import Any

from ssm.errors import UserError


def require_one_of(value: Any, name: str, known: Sequence[str]) -> None:
    """Raise UserError unless a value is one of those that are known."""
    if value not in known:
        raise UserError(f"{name} must be {' or '.join(map(repr, known))}, got {value!r}")
