"""Which samples make a batch: orders, padding, keys, and what is gathered."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.data.standardize import standardize, statistics
from ssm.training import batches
from ssm.training.batches import (
    augmentation_key,
    count_samples,
    epoch_batches,
    fixed_order,
    images_on_device,
    plain_batch,
    reshuffled,
    seed_key,
    standardized_batch,
    step_key,
    steps_per_epoch,
)


def test_the_last_batch_counts():
    assert [steps_per_epoch(*sizes) for sizes in ((60_000, 128), (256, 128), (1, 8))] == [469, 2, 1]


def test_reshuffled_orders_are_permutations_that_differ_by_seed_and_epoch():
    orders = [reshuffled(seed_key(seed), epoch, 50).tolist() for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4


def test_a_fixed_order_is_a_permutation_and_always_the_same():
    order = fixed_order(10)
    assert sorted(order.tolist()) == list(range(10)) and order.tolist() != list(range(10))
    np.testing.assert_array_equal(order, fixed_order(10))


@pytest.mark.parametrize("order", [None, np.arange(20)[::-1]])
def test_an_epochs_batches_hold_every_sample_once_a_pass_and_padding_is_marked(order, compiled):
    def make(epoch):
        return epoch_batches(seed_key(3), epoch, order, samples=20, batch_size=8, passes=2)

    indices, valid = compiled(make)(1)
    chex.assert_shape([indices, valid], (6, 8))
    for half in (slice(0, 3), slice(3, 6)):
        assert sorted(indices[half][valid[half] == 1].tolist()) == list(range(20))
    np.testing.assert_array_equal(valid.sum(1), [8, 8, 4, 8, 8, 4])
    for number in (2, 3):  # the passes of epoch 1
        expected = reshuffled(seed_key(3), number, 20) if order is None else order
        np.testing.assert_array_equal(indices[3 * (number - 2) : 3 * (number - 1)].ravel()[:20], expected)


def test_a_seed_that_does_not_reshuffle_keeps_its_first_order():
    sizes = {"samples": 20, "batch_size": 8, "passes": 2, "reshuffles": False}
    for epoch in (0, 3):
        indices, valid = epoch_batches(seed_key(3), jnp.asarray(epoch), None, **sizes)
        np.testing.assert_array_equal(indices[valid == 1].reshape(2, 20), [reshuffled(seed_key(3), 0, 20)] * 2)


def test_keys_differ_by_purpose_step_and_seed():
    key, other = seed_key(3), seed_key(np.uint32(4))
    keys = [
        key,
        other,
        *(make(one, n) for make in (augmentation_key, step_key) for one in (key, other) for n in (0, 1)),
    ]
    assert len({tuple(jax.random.key_data(one).tolist()) for one in keys}) == len(keys)


def test_trees_are_gathered_as_they_are():
    data = {"a": jnp.arange(5), "b": jnp.arange(10.0).reshape(5, 2)}, jnp.arange(5) * 2
    assert count_samples(data) == 5
    inputs, targets = plain_batch(data, jnp.array([4, 2]), None)
    chex.assert_trees_all_equal(inputs, {"a": jnp.array([4, 2]), "b": jnp.array([[8.0, 9.0], [4.0, 5.0]])})
    np.testing.assert_array_equal(targets, [8, 4])


def test_images_are_standardised_one_by_one_whatever_the_parts_are(monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (7, 4, 4, 3), np.uint8)
    monkeypatch.setattr(batches, "PART", 3)
    data = images_on_device(images, np.arange(7))
    assert data.images.dtype == jnp.uint8
    found, labels = standardized_batch(data, jnp.array([6, 0]), None)
    np.testing.assert_array_equal(labels, [6, 0])
    np.testing.assert_allclose(found, standardize(images[[6, 0]], *statistics(images[[6, 0]])), rtol=1e-5, atol=1e-5)
