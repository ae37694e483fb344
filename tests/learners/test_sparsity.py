"""Densities by layer against the table of RigL's program; random masks with exact counts; the largest of many."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.learners.selection import kept_of, largest_of_all
from ssm.learners.sparsity import (
    check_counts,
    check_shares,
    cubic_counts,
    layer_densities,
    output_layer,
    random_masks,
    scattered_masks,
    top,
)
from tests.support.literature import KEY, golden
from tests.support.quick import quick

TABLE = golden("rigl_set")["layer_densities"]
SMALL = {"a": jnp.ones((12, 8)), "b": jnp.ones((3, 3, 4, 6)), "c": jnp.ones((8, 5))}


def shapes_of(net):
    return {name: jax.ShapeDtypeStruct(tuple(shape), jnp.float32) for name, shape in TABLE["shapes"][net]}


@pytest.mark.parametrize("case", TABLE["values"])
def test_densities_and_counts_of_the_published_program(case):
    net, distribution, _, density = case.split()
    expected, kernels = TABLE["values"][case], shapes_of(net)
    short = {"erdos_renyi_kernel": "erk", "erdos_renyi": "er"}[distribution]
    found = layer_densities(kernels, float(density), short)
    np.testing.assert_allclose(list(found.values()), expected["density"], rtol=1e-12)
    counts = [kept_of(kernel.size, found[path]) for path, kernel in kernels.items()]
    assert counts == expected["ones"]
    assert sum(counts) / sum(kernel.size for kernel in kernels.values()) == pytest.approx(
        expected["total_share"], 1e-12
    )


def test_all_dense_and_the_same_everywhere():
    assert layer_densities(SMALL, 1.0) == dict.fromkeys(SMALL, 1.0)
    assert layer_densities(SMALL, 0.3, "uniform", dense=["c"]) == {"a": 0.3, "b": 0.3, "c": 1.0}


def test_dense_layers_take_from_the_others():
    found = layer_densities(SMALL, 0.3, dense=["c"])
    total = sum(kept_of(kernel.size, found[path]) for path, kernel in SMALL.items())
    assert found["c"] == 1 and total == pytest.approx(0.3 * 352, abs=3)
    with pytest.raises(UserError, match="dense layers c"):
        layer_densities(SMALL, 0.05, dense=["c"])


@pytest.mark.parametrize(("distribution", "density"), quick([("erk", 0.01), ("er", 0.37), ("uniform", 1.0)]))
def test_random_masks_have_exact_counts(distribution, density):
    masks = jax.jit(lambda key: random_masks(density, distribution)(key, SMALL))(KEY)
    shares = layer_densities(SMALL, density, distribution)
    for path, mask in masks.items():
        assert set(np.unique(mask)) <= {0, 1} and mask.dtype == jnp.float32
        assert mask.sum() == kept_of(mask.size, shares[path]) >= 1


def test_random_masks_differ_by_key_and_are_uniform():
    draw = jax.jit(lambda key: random_masks(0.3, "uniform")(key, {"a": jnp.ones((4, 3))})["a"])
    masks = np.stack([draw(key) for key in jax.random.split(KEY, 500)])
    np.testing.assert_allclose(masks.mean(0), kept_of(12, 0.3) / 12, atol=0.1)


def test_a_dense_output():
    assert random_masks(0.3, "erk", dense_output=True)(KEY, SMALL)["c"].all()
    assert scattered_masks(0.5, dense_output=True)(KEY, SMALL)["c"].all()
    assert output_layer(["Dense_9/kernel", "Conv_11/kernel", "Dense_10/kernel", "Dense_1/kernel"]) == "Dense_10/kernel"


@pytest.mark.parametrize("row", quick(golden("set_original")["erdos_renyi"]["rows"]), ids=str)
def test_erdos_renyi_draws_each_weight_by_itself(row):
    rows, columns, epsilon, formula, drawn, _ = row
    mask = scattered_masks(epsilon)(KEY, {"a": jnp.ones((rows, columns))})["a"]
    size, share = rows * columns, min(1, formula)
    deviation = np.sqrt(size * share * (1 - share))
    assert abs(mask.sum() - size * share) <= 4 * deviation and abs(drawn - size * share) <= 4 * deviation


def test_the_largest_by_hand(compiled):
    scores = jnp.array([[3.0, 1.0, 2.0], [2.0, 2.0, -1.0]])
    expected = {0: "000000", 1: "100000", 2: "101000", 3: "101100", 4: "101110", 5: "111110", 6: "111111"}
    for number, mask in expected.items():
        found = compiled(top)(scores, jnp.int32(number))
        np.testing.assert_array_equal(found.ravel(), [int(one) for one in mask])
    among = jnp.array([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    np.testing.assert_array_equal(compiled(top)(scores, jnp.int32(2), among), [[0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(compiled(top)(scores, jnp.int32(4), among), among)
    layers = {"a": scores[0], "b": scores[1]}
    for number, value in enumerate([3, 2, 2, 2, 1, -1]):
        kept = compiled(partial(largest_of_all, ties="all"))(layers, number + 1)
        assert min(float(layers[path][mask > 0].min(initial=9)) for path, mask in kept.items()) == value


@pytest.mark.parametrize("name", ["density_schedule", "density_schedule_from_dense"])
def test_cubic_schedule_of_the_published_program(name):
    table = golden("granet")[name]
    setting, every = table["setting"], table["setting"]["update_frequency"]
    times = int(setting["final_prune_epoch"] * setting["steps_per_epoch"] / every)
    counts = cubic_counts(1_000_000, setting["init_density"], setting["final_density"], times)
    for step, kept in table["rows"]:
        assert step % every == 0
        assert kept == (counts[step // every] if step // every < times else None), step


def test_options_out_of_range():
    for wrong in (0, -0.1, 1.5, "half"):
        with pytest.raises(UserError, match="drop must be"):
            check_shares(density=0.5, drop=wrong)
    for wrong in (0, -1, 1.5, None):
        with pytest.raises(UserError, match="every must be"):
            check_counts(steps=3, every=wrong)
