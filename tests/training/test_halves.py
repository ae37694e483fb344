"""A batch in two halves, on one device or two, is the whole batch but for rounding, and always the same bits."""

from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.recipes import build
from ssm.recipes.config import resolve
from ssm.runs.run import apart
from ssm.training.halves import in_halves
from tests.support.groups import members_of, rows_of, same, train
from tests.support.runs import short

SEEDS = [2, 4, 6]


def config(dataset, **overrides):
    values = {"epochs": 2, "batch_size": 8, "width": 0.1, **overrides}
    named = {"model": values.pop("model", "conv2"), "method": "signed", "preset": "default", "dataset": "cifar10"}
    return resolve(**named, samples=len(dataset.train_labels), overrides=values)


def trained(dataset, seeds, devices, *, apart=False, **overrides):
    own = config(dataset, **overrides)
    return train(build.trainer(own, dataset, devices=jax.devices()[:devices], apart=apart), members_of(own, seeds))


@pytest.fixture(scope="module")
def group(pictures):
    return trained(pictures, SEEDS, 1)


@pytest.mark.slow
def test_a_seed_alone_on_two_devices_is_the_same_as_in_a_group(pictures, group):
    same(trained(pictures, [4], 2, apart=True), group, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "devices", "two"), [([6, 4], 2, False), ([4, 2], 4, True)])
def test_wherever_halves_are_computed_they_are_the_same(pictures, group, seeds, devices, two):
    found = trained(pictures, seeds, devices, apart=two)
    for seed in seeds:
        same(found, group, seed)


@pytest.mark.slow
def test_an_odd_batch_has_its_halves_too(pictures):
    odd = {"batch_size": 7}
    same(trained(pictures, [4], 2, apart=True, **odd), trained(pictures, [2, 4], 1, **odd), 4)


@pytest.mark.slow
def test_halves_are_the_whole_but_for_rounding(pictures, group, monkeypatch):
    make_task = build.make_task
    monkeypatch.setattr(build, "make_task", lambda *a, **more: replace(make_task(*a, **more), halves=False))
    whole = trained(pictures, [4], 1)
    for left, right in zip(rows_of(whole, 4), rows_of(group, 4), strict=True):
        assert left["train_loss"] == pytest.approx(right["train_loss"], rel=1e-5)
        assert left["test_loss"] == pytest.approx(right["test_loss"], rel=1e-5)
    chex.assert_trees_all_close(whole.params[4], group.params[4], atol=1e-5)


def test_the_two_halves_of_arrays():
    images, valid = in_halves((jnp.arange(10.0).reshape(5, 2), jnp.ones(5)))
    np.testing.assert_array_equal(images[1], [[6, 7], [8, 9], [0, 0]])
    np.testing.assert_array_equal(valid, [[1, 1, 1], [1, 1, 0]])
    np.testing.assert_array_equal(in_halves(jnp.arange(4)), [[0, 1], [2, 3]])


def test_which_nets_are_computed_in_halves(pictures, digits):
    conv = build.task_of(config(pictures), pictures)
    assert conv.halves
    assert not build.task_of(short(digits), digits).halves
    assert not build.task_of(config(pictures, model="resnet20"), pictures).halves
    some = {(1, 1): False, (1, 2): True, (2, 2): False, (2, 4): True, (3, 4): False}
    assert {(group, count): apart(conv, group, "map", count) for group, count in some} == some
    assert not apart(conv, 1, "vmap", 2)
