import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.analysis import ALL, flip_rate, moves, shares

INITIAL = np.array([[[1, -1], [0, 1], [0, -1], [1, 1]]], np.int8)  # one seed, four inputs, two outputs
FINAL = np.array([[[1, 0], [-1, -1], [0, 1], [0, 1]]], np.int8)

pairs = st.integers(1, 3).flatmap(
    lambda seeds: st.tuples(*[hnp.arrays(np.int8, (seeds, 3, 4), elements=st.integers(-1, 1))] * 2)
)


def test_shares_by_hand():
    found = shares({"Conv_0": np.array([[1, 1, -1, 0], [0, 0, 0, 0]], np.int8), "Dense_0": np.ones((2, 1), np.int8)})
    assert list(found) == ["Conv_0", "Dense_0", ALL]
    assert [list(field) for field in found["Conv_0"]] == [[0.25, 0], [0.25, 1], [0.5, 0]]
    assert [list(field) for field in found[ALL]] == [[0.2, 0], pytest.approx([0.2, 0.8]), pytest.approx([0.6, 0.2])]
    assert list(found["Conv_0"].remaining) == [0.75, 0]


def test_moves_by_hand():
    found = moves(INITIAL, FINAL)
    assert [list(field) for field in found] == [[2 / 8], [2 / 8], [2 / 8], [1 / 8], [1 / 8]]


def test_moves_of_a_convolution():
    initial = np.zeros((2, 3, 3, 1, 2), np.int8)
    initial[0, 0] = 1
    found = moves(initial, -initial)
    assert list(found.inverted) == [6 / 18, 0] and list(found.left_hidden) == [12 / 18, 1]


def test_masks_of_two_shapes_are_refused():
    with pytest.raises(ValueError, match="two shapes"):
        moves(INITIAL, FINAL[:, :1])


@given(pairs)
def test_moves_add_up_to_both_masks_shares(pair):
    initial, final = pair
    found = moves(initial, final)
    before, after = shares({"a": initial})["a"], shares({"a": final})["a"]
    np.testing.assert_allclose(sum(found), 1)
    np.testing.assert_allclose(sum(before), 1)
    np.testing.assert_allclose(found.kept + found.hidden + found.inverted, before.remaining)
    np.testing.assert_allclose(found.kept + found.inverted + found.revived, after.remaining)


@given(pairs)
def test_moves_back_are_the_moves_turned(pair):
    there, back = moves(*pair), moves(*pair[::-1])
    np.testing.assert_array_equal(there.hidden, back.revived)
    np.testing.assert_array_equal(there.inverted, back.inverted)


def test_flip_rate_by_hand():
    masks = np.array([[[1, 0], [0, -1]], [[1, 1], [0, 1]], [[1, 1], [0, 1]]], np.int8)
    assert list(flip_rate(masks)) == [0.5, 0]
    assert flip_rate(masks[:1]).shape == (0,)


@given(pairs)
def test_flips_are_all_moves_but_two(pair):
    found = moves(*pair)
    rates = [flip_rate(np.stack(masks))[0] for masks in zip(*pair, strict=True)]
    assert rates == pytest.approx(1 - found.kept - found.left_hidden)
