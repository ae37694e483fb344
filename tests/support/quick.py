"""Which cases of a test are run by `make test`: the others are slow ones, which `.ci/run` runs."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest


def quick(cases: Iterable[Any], number: int = 1) -> list[Any]:
    """Return the cases of `pytest.mark.parametrize`, all but the first `number` of them marked as slow.

    A tuple has a value for each argument.  For tests of many cases that are alike: one of them in `make test` shows
    that the code works at all.
    """
    cases = list(cases)
    return [*islice(cases, number), *(_slow(case) for case in cases[number:])]


def _slow(case: Any) -> Any:
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)
    values = case if type(case) is tuple else (case,)  # a named tuple is one value
    return pytest.param(*values, marks=pytest.mark.slow)
