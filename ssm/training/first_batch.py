"""What the untrained net makes of its first batch: whether there is a gradient to start from."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ssm import losses
from ssm.initializers import ELUS_CONV
from ssm.recipes import build
from ssm.recipes.config import Config
from ssm.supermask import effective_weights
from ssm.training.epoch import apply, augmented, others, pass_order, take
from ssm.training.loop import Trainer

MOST_DEAD = 2 / 3
"""Share of dead samples from which on a net hardly ever learns (docs/ledger.md, row 7; k = 3 stays below it)."""


class FirstBatch(NamedTuple):
    """Of the first batch: standard deviation of all logits, and share of samples whose true class has p < 1e-7."""

    deviation: float
    dead: float


def first_batch(trainer: Trainer, seed: int) -> FirstBatch:
    """Return what the net of a seed makes of the batch that its training begins with."""
    net, config = trainer.net, trainer.config

    @jax.jit
    def look(seed, train, order):
        key = build.seed_key(seed)
        index = pass_order(key, 0, order, trainer.samples)[: config.batch_size]
        images, labels = take(train, index)
        images = augmented(config, jax.random.fold_in(build.augmentation_key(key, 0), 0), images)
        variables = net.init(jax.random.fold_in(key, build.INIT), images[:1])
        weights = effective_weights(net.learner, variables["frozen"], variables["params"])
        logits, _ = apply(net, weights, others(variables), images, present=jnp.ones(len(labels), bool))
        loss = losses.cross_entropy(logits, labels)
        return jnp.std(logits), jnp.mean(loss > -math.log(losses.CLIP))

    found = look(np.uint32(seed), trainer.train, trainer.order)
    return FirstBatch(*(float(value) for value in jax.device_get(found)))


def remark(found: FirstBatch, config: Config) -> str:
    """Return what a first batch means, in words; one that begins with `warning` asks for a smaller factor."""
    seen = (
        f"first batch: logits have standard deviation {found.deviation:.2g}; the true class has p < 1e-7 for "
        f"{100 * found.dead:.0f} % of the samples"
    )
    if math.isfinite(found.deviation) and found.dead <= MOST_DEAD:
        return seen
    if config.init in ("elus", "he"):
        smaller = next((f for f in (ELUS_CONV, 1.0) if f < config.factor), config.factor / 2)
        advice = f"take a smaller --factor than {config.factor:.4g}, {smaller:.4g} say"
    else:
        advice = "take a smaller scale, --init=he --factor=1 say"
    meaning = "the frozen weights are too large: such a net falls into one class for all and stays there"
    return f"warning: {seen}; {meaning}; {advice}."
