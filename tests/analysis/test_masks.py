import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.analysis import ALL, always_hidden, by_layer, equality, flip_rate, hidden_inputs, input_sums, moves, shares

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


THREE = np.array([[[1, 0], [-1, 0]], [[1, 0], [1, -1]], [[0, 0], [1, -1]]], np.int8)  # runs of four elements each

runs = st.integers(2, 5).flatmap(lambda seeds: hnp.arrays(np.int8, (seeds, 3, 4), elements=st.integers(-1, 1)))


def test_two_runs_by_hand():
    # Shares of -1, 0, 1: 1/4 1/2 1/4 and 1/4 1/4 1/2, so chance is 1/16 + 1/8 + 1/8.
    assert equality(THREE[:2]) == (0.5, 5 / 16, 0.5, 5 / 16)
    # Hidden 1/2 and 1/4, kept 1/2 and 3/4.
    assert equality(THREE[:2], absolute=True) == (0.75, 0.5, 0.75, 0.5)


def test_three_runs_by_hand():
    # One of four alike in all; pairs are alike in 2, 1 and 3 of 4, and by chance in 5/16, 6/16 and 5/16.
    assert equality(THREE) == pytest.approx((1 / 4, 1 / 64 + 1 / 16 + 1 / 32, 1 / 2, 1 / 3))


def test_a_run_by_itself_has_no_pairs():
    found = equality(THREE[:1])
    assert found[:2] == (1, 1) and np.isnan(found.pairwise) and np.isnan(found.pairwise_chance)


@given(runs)
def test_pairwise_is_the_mean_over_all_pairs(mask):
    found = equality(mask)
    each = [equality(mask[list(pair)]) for pair in combinations(range(len(mask)), 2)]
    assert found.pairwise == pytest.approx(np.mean([one.same for one in each]))
    assert found.pairwise_chance == pytest.approx(np.mean([one.chance for one in each]))
    assert found.same <= found.pairwise + 1e-12


@given(runs)
def test_absolute_values_are_no_less_alike(mask):
    signed, absolute = equality(mask), equality(mask, absolute=True)
    assert all(0 <= a <= b + 1e-12 <= 1 + 2e-12 for a, b in zip(signed, absolute, strict=True))


def test_chance_is_what_shuffled_masks_give():
    rng = np.random.default_rng(0)
    mask = rng.choice(np.array([-1, 0, 1], np.int8), (3, 200, 100), p=[0.1, 0.7, 0.2])
    found = equality(mask)
    assert found.same == pytest.approx(found.chance, abs=0.01)
    assert found.pairwise == pytest.approx(found.pairwise_chance, abs=0.01)


TWO = np.array([[[0, 0], [1, 0], [-1, 1]], [[0, 0], [0, 0], [1, -1]]], np.int8)  # two seeds, three inputs, two outputs


def test_always_hidden_by_hand():
    assert always_hidden(TWO) == pytest.approx(3 / 6)  # the first input's two weights, and one of the second's


def test_sums_of_inputs_by_hand():
    assert list(input_sums(TWO)) == [0, 1, 4]
    assert [hidden_inputs(TWO, most=most) for most in (0, 1, 3, 4)] == [1, 2, 2, 3]
    assert hidden_inputs(TWO) == 1


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


SMALL = np.array([[[1, 0]], [[1, 1]]], np.int8)  # two seeds, one input, two outputs
LARGE = np.array([[[0, 0, 1], [1, 1, 0]], [[0, 0, 1], [1, -1, -1]]], np.int8)


def test_all_is_the_mean_over_all_elements():
    found = by_layer(equality, {"Dense_0": LARGE, "Dense_1": SMALL})
    assert list(found) == ["Dense_0", "Dense_1", ALL]
    assert (found["Dense_0"].same, found["Dense_1"].same) == (pytest.approx(4 / 6), 0.5)
    assert found[ALL].same == pytest.approx(5 / 8)


def test_numbers_arrays_and_named_tuples_are_averaged_and_options_passed_on():
    masks = {"Dense_0": LARGE, "Dense_1": SMALL}
    np.testing.assert_allclose(by_layer(flip_rate, masks)[ALL], [3 / 8])
    assert by_layer(lambda mask, *, add: float(mask.max()) + add, masks, add=2)[ALL] == 3.0
    assert by_layer(equality, masks, absolute=True)["Dense_0"].same == pytest.approx(5 / 6)
    np.testing.assert_allclose(by_layer(moves, masks, masks)[ALL].kept, [4 / 8, 6 / 8])


def test_other_layers_or_none_are_refused():
    with pytest.raises(ValueError, match="no layers"):
        by_layer(equality, {})
    with pytest.raises(ValueError, match="not the same"):
        by_layer(moves, {"Dense_0": SMALL}, {"Dense_1": SMALL})


def test_analysis_needs_no_jax():
    code = "import sys, ssm.analysis; sys.exit('jax' in sys.modules or 'matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
