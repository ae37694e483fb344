import jax.numpy as jnp
import pytest

from ssm.metrics import MaskCounts, count, dead_layers, shares


def test_counts_of_a_literal_mask():
    mask = jnp.array([[1, 0, -1], [1, 1, 0]], jnp.int8)
    before = jnp.array([[1, 1, -1], [-1, 1, 0]], jnp.int8)
    assert [int(value) for value in count(mask, before)] == [1, 2, 3, 2]


def test_dead_layers_are_named():
    assert dead_layers({"a": jnp.zeros((2, 2)), "b": jnp.array([[0, -1]]), "c": jnp.zeros(3)}) == ["a", "c"]


def test_shares_in_all_and_per_layer():
    first = MaskCounts(*map(jnp.array, ([9, 1], [9, 2], [9, 1], [9, 3])))
    second = MaskCounts(*map(jnp.array, ([9, 0], [9, 6], [9, 0], [9, 1])))
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
