import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.analysis import always_hidden, equality, hidden_inputs, input_sums

MASK = np.array([[[0, 0], [1, 0], [-1, 1]], [[0, 0], [0, 0], [1, -1]]], np.int8)  # two seeds, three inputs, two outputs


def test_always_hidden_by_hand():
    assert always_hidden(MASK) == pytest.approx(3 / 6)  # the first input's two weights, and one of the second's


def test_sums_of_inputs_by_hand():
    assert list(input_sums(MASK)) == [0, 1, 4]
    assert [hidden_inputs(MASK, most=most) for most in (0, 1, 3, 4)] == [1, 2, 2, 3]
    assert hidden_inputs(MASK) == 1


def test_sums_of_a_convolutions_inputs_run_over_its_window_and_outputs():
    mask = np.zeros((2, 3, 3, 2, 4), np.int8)
    mask[:, 1, :, 1, 0] = -1
    assert list(input_sums(mask)) == [0, 6]
    assert hidden_inputs(mask) == 1 and always_hidden(mask) == pytest.approx(69 / 72)


def test_sums_do_not_overflow_a_byte():
    assert list(input_sums(np.ones((50, 1, 300), np.int8))) == [15000]


@given(hnp.arrays(np.int8, (3, 2, 5), elements=st.integers(-1, 1)))
def test_what_is_always_hidden_is_alike_in_every_run(mask):
    assert always_hidden(mask) <= equality(mask).same
    assert input_sums(mask).sum() == np.abs(mask).sum()
    assert hidden_inputs(mask, most=15) == 2
