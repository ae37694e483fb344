"""Short training runs of a learner on a tiny net, and what must hold after one of any learner."""

from typing import Any

import chex
import jax
import numpy as np
import optax
from flax import linen as nn

import ssm
from ssm.learners import Learner

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(64, 6)).astype(np.float32), RNG.integers(0, 3, 64).astype(np.int32)
TEST = RNG.normal(size=(24, 6)).astype(np.float32), RNG.integers(0, 3, 24).astype(np.int32)
STEPS = 4
"""Training steps of an epoch."""


def net_of(learner: Learner) -> ssm.Supermask:
    return ssm.Supermask(
        nn.Sequential([nn.Dense(5, use_bias=False), nn.elu, nn.Dense(3, use_bias=False)]), learner=learner
    )


def short_run(learner: Learner, seeds: tuple[int, ...] = (3,), **options: Any) -> ssm.Result:
    """Train two epochs of four steps, compiled quickly: nearly all the time goes into that."""
    given = {"epochs": 2, "batch_size": 16, "optimizer": optax.adam, "learning_rate": 0.01, **options}
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        return ssm.train(net_of(learner), data=DATA, test=TEST, seeds=seeds, **given)
    finally:
        jax.config.update("jax_disable_most_optimizations", False)


def check_run(learner: Learner, **options: Any) -> ssm.Result:
    """Return a short run of seeds 0 and 3, having said that seed 3 is as alone, finite, with masks in {-1, 0, 1}."""
    both, alone = short_run(learner, (0, 3), **options), short_run(learner, (3,), **options)
    one = jax.tree.map(lambda leaf: leaf[1:], (both.variables, both.masks))
    chex.assert_trees_all_equal(one, (alone.variables, alone.masks))
    assert not both.failures
    assert np.isfinite([row["test_loss"] for row in both.history]).all()
    for mask in both.masks.values():
        assert set(np.unique(mask)) <= {-1, 0, 1}
    return both
