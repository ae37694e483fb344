from types import SimpleNamespace

import pytest

from ssm.errors import UserError
from ssm.runs.memory import in_fitting_groups, out_of_memory

FULL = RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")


def train_all(count, group, fits, error=FULL):
    """Return the groups that were trained, and what was said, where at most `fits` members fit."""
    trained, said = [], []

    def train(left, group):
        for start in range(0, len(left), group):
            part = left[start : start + group]
            if len(part) > fits:
                raise error
            trained.append("".join(member.key for member in part))
            yield part

    members = [SimpleNamespace(key=name) for name in "abcdefgh"[:count]]
    in_fitting_groups(members, group, train, lambda group, why: said.append((group, why)))
    return trained, said


def test_groups_that_fit_are_left_as_they_are():
    assert train_all(5, 2, fits=2) == (["ab", "cd", "e"], [])


def test_a_group_is_halved_until_it_fits():
    trained, said = train_all(8, 8, fits=3)
    assert trained == ["ab", "cd", "ef", "gh"]
    assert [group for group, _ in said] == [4, 2]
    assert said[0][1] == (
        "memory does not suffice for 8 seeds at once, 4 are trained together now "
        "(RuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.)"
    )


def test_what_was_finished_before_is_not_trained_again():
    limits = iter([9, 9, 1, 1, 1, 1, 1])
    trained = []

    def train(left, group):
        for start in range(0, len(left), group):
            part = left[start : start + group]
            if len(part) > next(limits):
                raise MemoryError
            trained.append("".join(member.key for member in part))
            yield part

    in_fitting_groups([SimpleNamespace(key=name) for name in "abcdef"], 2, train, lambda group, why: None)
    assert trained == ["ab", "cd", "e", "f"]


def test_one_that_does_not_fit_is_an_error_with_what_helps():
    with pytest.raises(UserError, match=r"for one seed \(RuntimeError: RESOURCE_EXHAUSTED.*--batch-size.*bfloat16"):
        train_all(3, 3, fits=0)


def test_other_errors_are_no_matter_of_memory():
    assert not out_of_memory(ValueError("RESOURCE_EXHAUSTED")) and out_of_memory(MemoryError())
    with pytest.raises(RuntimeError, match="INTERNAL"):
        train_all(3, 3, fits=2, error=RuntimeError("INTERNAL: a kernel failed"))
