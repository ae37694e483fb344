import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.ops.matmul import round_to_bfloat16
from ssm.recipes import build
from ssm.recipes.config import resolve


def variables(**overrides):
    method = overrides.pop("method", "signed")
    config = resolve(model="fcn", method=method, preset="default", dataset="mnist", samples=60_000, overrides=overrides)
    net = build.build(config)
    return net, net.init(build.seed_key(0), jnp.zeros((1, 28, 28, 1)))


@pytest.mark.parametrize(
    ("overrides", "constant"),
    [
        ({"init": "he"}, np.sqrt(2 / 784)),
        ({"init": "elus"}, np.sqrt(6 / 784)),
        ({"init": "elus", "factor": 1.5}, 1.5 * np.sqrt(2 / 784)),
        ({"init": "xavier"}, np.sqrt(2 / 1084)),
        ({"init": "paper_formula", "p0": 0.5}, np.sqrt(3 / 784)),
    ],
)
def test_frozen_weights_are_the_constants_of_the_ledger(overrides, constant):
    _, made = variables(**overrides)
    kernel = np.asarray(made["frozen"]["net"]["Dense_0"]["kernel"])
    np.testing.assert_allclose(np.abs(kernel), constant, rtol=1e-6)
    assert abs(np.sign(kernel).mean()) < 0.01


def test_scores_are_xavier_uniform_and_hide_an_eighth():
    net, made = variables()
    scores = np.asarray(made["params"]["net"]["Dense_0"]["kernel"])
    bound = np.sqrt(6 / 1084)
    assert np.abs(scores).max() <= bound and np.abs(scores).max() > 0.999 * bound
    hidden = [float((mask == 0).sum()) for mask in net.masks(made).values()]
    assert sum(hidden) / 266_200 == pytest.approx(0.128, abs=0.002)  # ledger, row 5


@pytest.mark.parametrize(("scale", "deviation"), [("he", np.sqrt(2 / 784)), ("elus", np.sqrt(6 / 784))])
@pytest.mark.parametrize("init", ["elus", "xavier"])
def test_scores_have_a_scale_of_their_own(scale, deviation, init):
    _, made = variables(score_scale=scale, init=init)
    assert np.asarray(made["params"]["net"]["Dense_0"]["kernel"]).std() == pytest.approx(deviation, rel=0.01)


def test_the_baseline_is_uniform_of_the_same_variance():
    _, made = variables(method="baseline")
    kernel = np.asarray(made["params"]["net"]["Dense_0"]["kernel"])
    assert kernel.std() == pytest.approx(np.sqrt(1.5 / 784), rel=0.01)
    assert np.abs(kernel).max() <= np.sqrt(4.5 / 784)


def test_bfloat16_rounds_frozen_constants_once():
    _, made = variables(precision="bfloat16")
    for leaf in jax.tree.leaves(made["frozen"]["net"]):
        np.testing.assert_array_equal(round_to_bfloat16(leaf), leaf)


def test_the_last_batch_counts():
    assert [build.steps_per_epoch(60_000, 128), build.steps_per_epoch(256, 128), build.steps_per_epoch(1, 8)] == [
        469,
        2,
        1,
    ]
