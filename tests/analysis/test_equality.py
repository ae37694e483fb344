from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.analysis import equality

MASK = np.array([[[1, 0], [-1, 0]], [[1, 0], [1, -1]], [[0, 0], [1, -1]]], np.int8)

masks = st.integers(2, 5).flatmap(lambda seeds: hnp.arrays(np.int8, (seeds, 3, 4), elements=st.integers(-1, 1)))


def test_two_runs_by_hand():
    # Shares of -1, 0, 1: 1/4 1/2 1/4 and 1/4 1/4 1/2, so chance is 1/16 + 1/8 + 1/8.
    assert equality(MASK[:2]) == (0.5, 5 / 16, 0.5, 5 / 16)
    # Hidden 1/2 and 1/4, kept 1/2 and 3/4.
    assert equality(MASK[:2], absolute=True) == (0.75, 0.5, 0.75, 0.5)


def test_three_runs_by_hand():
    # One of four alike in all; pairs are alike in 2, 1 and 3 of 4, and by chance in 5/16, 6/16 and 5/16.
    assert equality(MASK) == pytest.approx((1 / 4, 1 / 64 + 1 / 16 + 1 / 32, 1 / 2, 1 / 3))


def test_a_run_by_itself_has_no_pairs():
    found = equality(MASK[:1])
    assert found[:2] == (1, 1) and np.isnan(found.pairwise) and np.isnan(found.pairwise_chance)


@given(masks)
def test_pairwise_is_the_mean_over_all_pairs(mask):
    found = equality(mask)
    each = [equality(mask[list(pair)]) for pair in combinations(range(len(mask)), 2)]
    assert found.pairwise == pytest.approx(np.mean([one.same for one in each]))
    assert found.pairwise_chance == pytest.approx(np.mean([one.chance for one in each]))
    assert found.same <= found.pairwise + 1e-12


@given(masks)
def test_absolute_values_are_no_less_alike(mask):
    signed, absolute = equality(mask), equality(mask, absolute=True)
    assert all(0 <= a <= b + 1e-12 <= 1 + 2e-12 for a, b in zip(signed, absolute, strict=True))


def test_chance_is_what_shuffled_masks_give():
    rng = np.random.default_rng(0)
    mask = rng.choice(np.array([-1, 0, 1], np.int8), (3, 200, 100), p=[0.1, 0.7, 0.2])
    found = equality(mask)
    assert found.same == pytest.approx(found.chance, abs=0.01)
    assert found.pairwise == pytest.approx(found.pairwise_chance, abs=0.01)
