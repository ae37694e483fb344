import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.analysis import permutation_test, profiles, similarity

A = np.array([[1, -1], [1, 0], [0, 0]], np.int8)
B = np.array([[1, 0], [1, -1], [0, 0]], np.int8)

masks = hnp.arrays(np.int8, (4, 3), elements=st.integers(-1, 1))


def test_profiles_by_hand():
    found = profiles(A)
    assert list(found.rows) == [1, 0.5, 0] and found.columns == pytest.approx([2 / 3, 1 / 3])


def test_profiles_of_a_convolution_run_over_its_window():
    mask = np.zeros((2, 2, 1, 2), np.int8)
    mask[0, :, 0, 1] = -1
    assert [list(part) for part in profiles(mask)] == [[0.25], [0, 0.5]]


def test_similarity_by_hand():
    # Rows 1/2 0 -1/2 and 0 1/2 -1/2 about their means: 1/4 / 1/2; the columns are the same.
    assert similarity(A, B) == pytest.approx((0.5 + 1) / 2)


def test_a_profile_without_structure_counts_as_nothing():
    assert similarity(np.array([[1, 1], [0, 0]], np.int8), np.array([[1, 0], [0, 0]], np.int8)) == pytest.approx(0.5)
    assert similarity(np.zeros((2, 2), np.int8), A[:2]) == 0
    assert permutation_test(np.ones((3, 2), np.int8), A) == (0, 1)


def test_masks_of_two_shapes_are_refused():
    with pytest.raises(ValueError, match="two shapes"):
        similarity(A, A.T)


@given(masks, masks)
def test_similarity_is_symmetric_and_bounded_and_takes_no_notice_of_signs(a, b):
    found = similarity(a, b)
    assert abs(found) <= 1 + 1e-12
    assert found == pytest.approx(similarity(b, a)) == pytest.approx(similarity(-a, np.abs(b)))


def test_p_by_hand():
    # Of 6 orders of the rows 3 correlate with at least 1/2, and of 2 of the columns 1 does with 1.
    found = permutation_test(A, B, permutations=4000)
    assert found == pytest.approx((0.75, 0.25), abs=0.03)
    assert found == permutation_test(A, B, permutations=4000)
    assert found != permutation_test(A, B, permutations=4000, seed=1)


def test_p_is_smallest_for_a_structure_that_comes_again():
    density = np.linspace(0, 1, 30)[:, None] * np.linspace(0, 1, 20)
    rng = np.random.default_rng(0)
    a, b = (rng.random((2, 30, 20)) < density).astype(np.int8)
    assert permutation_test(a, b, permutations=99).p == 0.01
    assert permutation_test(a[rng.permutation(30)][:, rng.permutation(20)], b, permutations=99).p > 0.1
