import jax.numpy as jnp
import numpy as np
import pytest

from ssm.training.metrics import MaskCounts, as_ratio, count, dead_layers, shares, what_is_wrong


def test_counts_of_a_literal_mask():
    mask = jnp.array([[1, 0, -1], [1, 1, 0]], jnp.int8)
    before = jnp.array([[1, 1, -1], [-1, 1, 0]], jnp.int8)
    scores = jnp.array([[1, jnp.nan, -1], [jnp.inf, 1, 0]])
    assert [int(value) for value in count(mask, before, scores)] == [1, 2, 3, 2, 2]


def test_what_is_wrong_names_the_layers():
    fine = MaskCounts(*map(jnp.array, ([1, 0], [0, 4], [3, 0], [0, 0], [0, 0])))
    wild = fine._replace(infinite=jnp.array([2, 0]))
    layers = {"Dense_0": fine, "Dense_1": wild}
    assert what_is_wrong({"Dense_0": fine}, 0, finite=True) == ""
    assert what_is_wrong({"Dense_0": fine}, 0, finite=False) == "NaN or infinity in the loss"
    assert what_is_wrong(layers, 0, finite=False) == "NaN or infinity among the scores of Dense_1"
    assert what_is_wrong(layers, 1, finite=True) == "no weight is left in Dense_0, Dense_1"


def test_dead_layers_are_named():
    assert dead_layers({"a": jnp.zeros((2, 2)), "b": jnp.array([[0, -1]]), "c": jnp.zeros(3)}) == ["a", "c"]


def test_shares_in_all_and_per_layer():
    first = MaskCounts(*map(jnp.array, ([9, 1], [9, 2], [9, 1], [9, 3], [0, 0])))
    second = MaskCounts(*map(jnp.array, ([9, 0], [9, 6], [9, 0], [9, 1], [0, 0])))
    row = shares({"a": first, "b": second}, 1)
    assert row["remaining_weights"] == pytest.approx(2 / 10)
    assert row["flips"] == pytest.approx(4 / 10)
    assert [row[f"a:{name}"] for name in ("remaining", "minus", "zero", "plus", "flips")] == [
        0.5,
        0.25,
        0.5,
        0.25,
        0.75,
    ]
    assert row["b:remaining"] == 0


@pytest.mark.parametrize("samples", [60, 10_000, 60_000])
def test_a_mean_of_hits_is_their_ratio_in_double_precision(samples):
    for hits in (0, 1, samples // 3, samples - 1, samples):
        assert as_ratio(float(np.float32(hits) / np.float32(samples)), samples) == hits / samples


def test_a_mean_of_other_numbers_stays_as_it_is():
    assert as_ratio(0.12345, 100) == 0.12345
    assert np.isnan(as_ratio(float("nan"), 100)) and as_ratio(float("inf"), 100) == float("inf")
