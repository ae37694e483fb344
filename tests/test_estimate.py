import math

import jax.numpy as jnp
import pytest
from flax import linen as nn

from ssm import estimate as module
from ssm.build import build
from ssm.config import resolve
from ssm.estimate import count_masked, estimate
from ssm.supermask import Supermask

WEIGHTS = 266_200


def config(method="signed"):
    return resolve(model="fcn", method=method, preset="default", dataset="mnist", samples=205, overrides={})


def needs(digits, *, group=1, devices=1, method="signed"):
    chosen = config(method)
    return estimate(build(chosen), chosen, digits, group=group, devices=devices)


@pytest.mark.parametrize("method", ["signed", "binary", "baseline"])
def test_the_fcn_has_the_papers_number_of_weights(digits, method):
    assert needs(digits, method=method).weights == WEIGHTS


def test_only_masked_weights_are_counted():
    net = Supermask(nn.Sequential([nn.Dense(5), nn.LayerNorm(), nn.Dense(2)]))  # biases and scales are not masked
    assert count_masked(net, jnp.ones((1, 3))) == 3 * 5 + 5 * 2


def test_memory_grows_with_the_group_and_the_copies_of_the_data(digits):
    one = needs(digits)
    assert needs(digits, group=11).bytes - one.bytes == 10 * WEIGHTS * 23
    images = digits.train_images.nbytes + digits.test_images.nbytes
    assert needs(digits, devices=4).bytes - one.bytes == 3 * images
    assert one.bytes > images


def test_time_is_positive(digits):
    assert 0 < needs(digits).seconds < math.inf


def test_time_follows_the_rate_of_the_products(digits, monkeypatch):
    monkeypatch.setattr(module, "_rate", lambda rows, devices: len(devices) * {128: 1e9}[rows])
    one = needs(digits)
    # 205 training images pass every weight 2.2 times more than the 60 test images do, a product and a sum each.
    assert one.seconds == pytest.approx(0.95 * 2 * WEIGHTS * (2.2 * 205 + 60) / 1e9)
    assert needs(digits, group=10).seconds == one.seconds  # it's per seed
    assert needs(digits, devices=2).seconds == pytest.approx(one.seconds / 2)
