import math

import jax
import numpy as np
import pytest

from ssm.data.standardize import standardize, statistics
from ssm.recipes import build
from ssm.recipes.config import resolve
from ssm.training.batches import INIT, reshuffled, seed_key
from ssm.training.first_batch import FirstBatch, first_batch, remark
from tests.support.groups import one_device


def config(**overrides):
    return resolve(
        model="fcn",
        method="signed",
        preset="default",
        dataset="mnist",
        samples=205,
        overrides={"batch_size": 32, **overrides},
    )


def found(digits, **overrides):
    own = config(**overrides)
    return first_batch(build.trainer(own, digits, devices=one_device()), [build.member(own, 3)])


def test_it_is_the_untrained_net_on_the_batch_that_training_begins_with(digits):
    key = seed_key(3)
    net = build.build(config(), classes=4)
    index = np.asarray(reshuffled(key, 0, 205))[:32]
    images = standardize(digits.train_images[index], *statistics(digits.train_images[index]))
    logits = np.asarray(net.apply(net.init(jax.random.fold_in(key, INIT), images[:1]), images), np.float64)
    probabilities = np.exp(logits - logits.max(1, keepdims=True))
    probabilities /= probabilities.sum(1, keepdims=True)
    dead = (probabilities[np.arange(32), digits.train_labels[index]] < 1e-7).mean()
    assert found(digits) == pytest.approx((logits.std(), dead), rel=1e-4)


def test_the_deviation_grows_with_the_factor_and_so_do_the_dead(digits):
    small, large = found(digits, factor=0.5), found(digits, factor=20.0)
    assert small.deviation < 1 and small.dead == 0
    assert large.deviation > 100 and large.dead > 0.5


def test_a_batch_with_few_dead_samples_is_said_and_not_warned_of():
    text = remark(FirstBatch(3.6, 0.01), "do less")
    assert text == "first batch: logits have standard deviation 3.6; the true class has p < 1e-7 for 1 % of the samples"
    assert remark(FirstBatch(3.6, 2 / 3), "do less").startswith("first batch")


@pytest.mark.parametrize("batch", [FirstBatch(22.0, 0.71), FirstBatch(math.nan, 0.0)])
def test_more_than_two_thirds_are_a_warning_that_ends_with_the_advice(batch):
    """Which names a smaller factor: tests/recipes/test_build.py."""
    text = remark(batch, "do less")
    assert (
        text.startswith("warning: first batch")
        and "one class for all" in text
        and text.endswith("does not rise, do less.")
    )
