import numpy as np
import pytest

from ssm.analysis import ALL
from ssm.analysis.ablation import accuracy, shuffled_scores

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
