"""Memory that does not suffice: a group of seeds that does not fit is halved, and training goes on."""

import gc
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from ssm.errors import UserError

HELP = "use less at once: a smaller --batch-size or --width, --precision=bfloat16, or a device with more memory"


class Keyed(Protocol):
    """A member of a group."""

    @property
    def key(self) -> str: ...


M = TypeVar("M", bound=Keyed)


def out_of_memory(error: BaseException) -> bool:
    """Say whether an error is Python's, NumPy's or XLA's that memory does not suffice."""
    # Of JAX's exceptions (RuntimeErrors, whose class differs by version) the status is in the text alone.
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "RESOURCE_EXHAUSTED" in str(error))


def brief(error: BaseException) -> str:
    """Return an error's type and the beginning of its message, in one line."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message[:300]}" if message else type(error).__name__


def in_fitting_groups(
    members: Sequence[M],
    group: int,
    train: Callable[[Sequence[M], int], Iterable[Sequence[M]]],
    halved: Callable[[int, str], None],
) -> None:
    """Train members in groups of at most `group`; when memory does not suffice, the rest in groups half as large.

    `train(members, group)` yields each group's members once they are finished.  `halved` is told the new size, and why.

    Raises:
        UserError: where it does not suffice for one member.
    """
    left = list(members)
    while left:
        group, why = min(group, len(left)), ""
        try:
            for part in train(left, group):
                done = {member.key for member in part}
                left = [member for member in left if member.key not in done]
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            why = brief(error)
            if group == 1:
                raise UserError(f"memory does not suffice for one seed ({why}); {HELP}") from error
        if why:
            gc.collect()  # the traceback held the group's arrays
            before, group = group, group // 2
            halved(group, f"memory does not suffice for {before} seeds at once, {group} are trained together now ({why})")
