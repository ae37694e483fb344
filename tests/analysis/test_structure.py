import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.analysis import ALL, permutation_test, profiles, shuffled, similarity
from ssm.analysis.structure import accuracy, shuffled_scores, with_hidden

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


@given(hnp.arrays(np.int8, hnp.array_shapes(max_dims=4), elements=st.integers(-1, 1)), st.integers(0, 9))
def test_shape_and_shares_stay(mask, seed):
    before = mask.copy()
    found = shuffled(mask, np.random.default_rng(seed))
    assert found.shape == mask.shape and found.dtype == np.int8
    np.testing.assert_array_equal(np.sort(found, axis=None), np.sort(mask, axis=None))
    np.testing.assert_array_equal(mask, before)


def test_every_order_is_as_likely():
    mask, rng = np.array([[1], [0], [-1]], np.int8), np.random.default_rng(0)
    orders = [tuple(shuffled(mask, rng)[:, 0].tolist()) for _ in range(6000)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 6 and abs(counts - 1000).max() < 150


def test_it_goes_across_rows_and_columns():
    mask = np.zeros((20, 30), np.int8)
    mask[3] = 1
    found = shuffled(mask, np.random.default_rng(0))
    assert found.sum() == 30 and (found.sum(axis=1) > 0).sum() > 10


MASKS = {"Dense_0": np.array([[1, 0], [0, -1], [0, 0]], np.int8), "Dense_1": np.array([[1], [0]], np.int8)}


def test_accuracy_by_hand():
    logits = np.array([[0, 2, 1], [3, 3, 0], [0, 0, 5], [1, 0, 0]], np.float32)
    images = np.zeros((4, 1, 1, 1), np.float32)
    assert accuracy(lambda given: logits[: len(given)], images, np.array([1, 1, 2, 0])) == 0.75


def test_one_layer_alone_leaves_the_others_as_they_are():
    seen = []

    def score(masks):
        seen.append(masks)
        return float(len(seen))

    found = shuffled_scores(MASKS, score, shuffles=2)
    assert {name: scores.tolist() for name, scores in found.items()} == {
        "Dense_0": [1, 4],
        "Dense_1": [2, 5],
        ALL: [3, 6],
    }
    for first, last, both in (seen[:3], seen[3:]):
        np.testing.assert_array_equal(first["Dense_1"], MASKS["Dense_1"])
        np.testing.assert_array_equal(last["Dense_0"], MASKS["Dense_0"])
        np.testing.assert_array_equal(both["Dense_0"], first["Dense_0"])
        np.testing.assert_array_equal(both["Dense_1"], last["Dense_1"])
        for layer, mask in both.items():
            np.testing.assert_array_equal(np.sort(mask, axis=None), np.sort(MASKS[layer], axis=None))


def test_places_by_hand():
    # One of six places is kept and counts: the mean over many shuffles is 1/6, and 1/2 with that of two.
    def score(masks):
        return float(masks["Dense_0"][0, 0] == 1) + 10 * float(masks["Dense_1"][0, 0] == 1)

    found = shuffled_scores(MASKS, score, shuffles=6000)
    assert found["Dense_0"].mean() == pytest.approx(10 + 1 / 6, abs=0.02)
    assert found["Dense_1"].mean() == pytest.approx(1 + 5, abs=0.3)
    assert found[ALL].mean() == pytest.approx(5 + 1 / 6, abs=0.3)


def test_a_seed_says_all():
    def score(masks):
        return float(masks["Dense_0"][0, 0])

    one, same, other = (shuffled_scores(MASKS, score, shuffles=20, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one[ALL], same[ALL])
    assert (one[ALL] != other[ALL]).any()


def test_hidden_weights_are_drawn_from_those_that_are_kept():
    mask, weights = np.array([[1, 0, -1, 0, 0]], np.int8), np.float32([[2, 0, 3, 0, 5]])
    found = with_hidden(weights, mask)
    assert found[0, [0, 2, 4]].tolist() == [2, 3, 5] and set(found[0, [1, 3]]) <= {2, 3} and found.dtype == np.float32
    assert weights[0, 1] == 0
    np.testing.assert_array_equal(with_hidden(np.zeros((1, 5), np.float32), np.zeros((1, 5), np.int8)), 0)
