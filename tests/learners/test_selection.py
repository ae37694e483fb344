from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.learners.selection import largest, largest_of_each, least_of_all
from tests.support.quick import quick

FLOATS = st.floats(-10, 10, width=32) | st.sampled_from([0.0, -0.0, 0.5, 1.0, float(np.float32(1e-42)), -3e38, 3e38])
OPTIMISED = True  # so many values take long otherwise
select = jax.jit(largest, static_argnames="ties")


def by_sorting(values, kept, ties):
    flat = values.ravel()
    order = np.argsort(flat, kind="stable")[::-1]  # of equal values, the last first
    mask = np.zeros(flat.size, bool)
    mask[order[:kept]] = True
    if kept > 0:
        border = flat[order[kept - 1]]
        if ties == "all":
            mask |= flat >= border
        elif ties == "none" and np.sum(flat >= border) > kept:
            mask &= flat > border
    return mask.reshape(values.shape)


@pytest.mark.parametrize("ties", ["all", "none", "last"])
@settings(max_examples=150, deadline=None)
@given(values=hnp.arrays(np.float32, (7, 5), elements=FLOATS), kept=st.integers(0, 35))
def test_the_largest_are_those_of_a_sort(values, kept, ties):
    values = np.where(np.abs(values) < np.finfo(np.float32).tiny, np.float32(0), values)  # as XLA may see them
    np.testing.assert_array_equal(select(values, kept, ties=ties), by_sorting(values, kept, ties))


@pytest.mark.parametrize("kept", [1, 3, 1000, 23_520, 117_600, 235_199, 235_200])
@pytest.mark.parametrize("kind", ["uniform", "normal", "heavy", "few", "two scales"])
def test_a_layer_of_the_fcn(kind, kept):
    draw = np.random.default_rng(3)
    values = {
        "uniform": lambda: draw.uniform(-1, 1, 235_200),
        "normal": lambda: draw.normal(size=235_200),
        "heavy": lambda: draw.normal(size=235_200) * draw.uniform(size=235_200) ** 8,
        "few": lambda: draw.integers(-3, 4, 235_200) / 8,
        "two scales": lambda: np.where(draw.uniform(size=235_200) < 0.03, draw.uniform(1, 2, 235_200), 1e-30),
    }[kind]()
    values = values.astype(np.float32).reshape(784, 300)
    np.testing.assert_array_equal(select(values, kept), by_sorting(values, kept, "last"))


def test_nothing_and_everything():
    values = jnp.asarray([[1.0, -2.0, 3.0]])
    assert not largest(values, 0).any()
    assert largest(values, 3).all()


def test_nan_is_never_kept():
    values = jnp.asarray([jnp.nan, 1.0, 2.0, jnp.nan])
    assert largest(values, 1).tolist() == [False, False, True, False]
    assert largest(values, 2).tolist() == [False, True, True, False]


def test_counts_may_be_traced_and_seeds_vectorised():
    values = jax.random.normal(jax.random.key(0), (4, 30, 20))
    counts = jnp.asarray([1, 60, 300, 600])
    masks = jax.jit(jax.vmap(largest))(values, counts)
    assert masks.sum((1, 2)).tolist() == counts.tolist()
    for value, count, mask in zip(values, counts, masks, strict=True):
        np.testing.assert_array_equal(mask, by_sorting(np.asarray(value), int(count), "last"))


@pytest.mark.parametrize("ties", quick(["all", "none", "last"]))
def test_layers_are_searched_together_as_each_alone(ties):
    draw = np.random.default_rng(5)
    shapes = {"a": (30, 20), "b": (700, 3), "c": (5,)}
    for kept in ({"a": 60, "b": 1, "c": 5}, {"a": 0, "b": 2100, "c": 2}):
        values = {name: draw.integers(-9, 9, shape).astype(np.float32) / 7 for name, shape in shapes.items()}
        values["b"] += draw.normal(size=shapes["b"]).astype(np.float32)  # without ties
        select = jax.jit(partial(largest_of_each, kept=kept, ties=ties))
        masks = select({name: jnp.asarray(one) for name, one in values.items()})
        for name, mask in masks.items():
            np.testing.assert_array_equal(mask, by_sorting(values[name], kept[name], ties), err_msg=name)


def test_the_least_that_is_kept_of_all_layers():
    layers = {"a": jnp.asarray([[3.0, 1.0], [4.0, -2.0]]), "b": jnp.asarray([2.0, 2.0])}
    reached = {
        kept: int(sum((one >= least_of_all(layers, kept)).sum() for one in layers.values())) for kept in range(7)
    }
    assert reached == {0: 0, 1: 1, 2: 2, 3: 4, 4: 4, 5: 5, 6: 6}
    assert float(least_of_all(layers, 6)) == -2 and float(least_of_all(layers, 0)) == np.inf
