import math

import jax.numpy as jnp
import pytest
from flax import linen as nn

from ssm.recipes.build import build, make_task
from ssm.recipes.config import resolve
from ssm.runs import estimate as module
from ssm.runs.estimate import count_masked, estimate, fitting_group, forward_operations, memory_needed
from ssm.supermask import Supermask

WEIGHTS = 266_200


def config(method="signed"):
    return resolve(model="fcn", method=method, preset="default", dataset="mnist", samples=205, overrides={})


def task_of(digits, method="signed"):
    return make_task(config(method), image_shape=digits.train_images.shape[1:], classes=10)


def needs(digits, *, group=1, devices=1, method="signed", loop="map"):
    return estimate(task_of(digits, method), config(method), digits, group=group, devices=devices, loop=loop)


@pytest.mark.parametrize("method", ["signed", "binary", "baseline"])
def test_the_fcn_has_the_papers_number_of_weights(digits, method):
    assert needs(digits, method=method).weights == WEIGHTS


def test_only_masked_weights_are_counted():
    net = Supermask(nn.Sequential([nn.Dense(5), nn.LayerNorm(), nn.Dense(2)]))  # biases and scales are not masked
    assert count_masked(net, jnp.ones((1, 3))) == 3 * 5 + 5 * 2


def test_memory_grows_with_the_group_and_the_copies_of_the_data(digits):
    one = needs(digits)
    assert needs(digits, group=11).bytes - one.bytes == 10 * WEIGHTS * 31
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


def test_what_a_step_keeps_counts_for_each_seed_that_runs_at_the_same_moment(digits):
    data_bytes = digits.train_images.nbytes + digits.test_images.nbytes

    def memory(devices, loop):
        return memory_needed(task_of(digits), data_bytes, devices=devices, loop=loop)

    state = 31 * WEIGHTS
    looped, vectorised = memory(1, "map"), memory(1, "vmap")
    assert looped(1) == vectorised(1)
    step = vectorised(2) - looped(2)
    assert looped(3) - looped(2) == state and vectorised(3) - vectorised(2) == state + step
    # A batch of 128: the images and the two hidden layers' outputs are kept, at least.
    assert step >= 4 * 128 * (784 + 300 + 100)
    assert memory(2, "map")(2) - memory(2, "map")(1) == state + step


def test_a_group_is_as_large_as_memory_allows_and_at_least_one_seed():
    def memory(count):
        return 100.0 + 10 * count

    assert [fitting_group(memory, 8, available) for available in (math.inf, 180, 179, 125, 120, 50)] == [
        8,
        8,
        7,
        2,
        2,
        1,
    ]


@pytest.mark.parametrize(("model", "millions"), [("fcn", 0.2662), ("conv2", 43.78), ("conv4", 98.31), ("resnet20", 0)])
def test_the_operations_of_a_forward_pass_are_two_for_each_weight_at_each_place(model, millions):
    dataset = "mnist" if model == "fcn" else "cifar10"
    chosen = resolve(model=model, method="signed", preset="default", dataset=dataset, samples=205, overrides={})
    example = jnp.zeros((1, 28, 28, 1) if model == "fcn" else (1, 32, 32, 3))
    if model == "resnet20":  # by hand: stem; stages of 16, 32, 64 filters at 32, 16, 8 pixels a side; head
        stem, head, rest = 1024 * 27 * 16, 640, 5 * 9 * (1024 * 16**2 + 256 * 32**2 + 64 * 64**2)
        first = 1024 * 2 * 16 * 16 + 256 * 2 * 16 * 32 + 64 * 2 * 32 * 64  # 1 x 1 and the projection
        assert forward_operations(build(chosen), example) == 2 * (stem + head + rest + first)
    else:
        assert forward_operations(build(chosen), example) == pytest.approx(2e6 * millions, rel=2e-3)
