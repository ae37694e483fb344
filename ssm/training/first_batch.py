"""What the untrained net makes of its first batch: whether there is a gradient to start from."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ssm import losses
from ssm.training.batches import augmentation_key, count_samples, pass_order, seed_key
from ssm.training.loop import Member, Trainer, started
from ssm.training.settings import pinned
from ssm.training.step import effective_weights

MOST_DEAD = 2 / 3
"""Share of dead samples from which on a Conv net may not learn: Conv4 with k = 4.5 has 71 % (docs/ledger.md, row 7)."""


class FirstBatch(NamedTuple):
    """Of the first batch: standard deviation of all logits, and share of samples whose true class has p < 1e-7."""

    deviation: float
    dead: float


@pinned()
def first_batch(trainer: Trainer, group: Sequence[Member]) -> FirstBatch:
    """Return what the first seed's net of a group makes of the batch that its training begins with.

    For nets whose outputs are logits.  The whole group is started, as it is to be trained: nothing more is compiled.
    """
    task = trainer.task

    @jax.jit
    def look(seed, state, train, order):
        key, net = seed_key(seed), task.net(task.numbers)
        index = pass_order(key, 0, order, count_samples(train))[: task.batch_size]
        inputs, labels = task.batch(train, index, jax.random.fold_in(augmentation_key(key, 0), 0))
        plain = {"params": effective_weights(task, net, state, None), **state.rest}
        logits, _ = task.apply(net.module, plain, inputs, train=True, valid=jnp.ones(len(index), bool), key=key)
        return jnp.std(logits), jnp.mean(losses.cross_entropy(logits, labels) > -math.log(losses.CLIP))

    state = jax.tree.map(lambda leaf: leaf[0], jax.device_get(started(trainer, group)))
    deviation, dead = jax.device_get(look(np.uint32(group[0].seed), state, trainer.train, trainer.order))
    return FirstBatch(float(deviation), float(dead))


def remark(first: FirstBatch, advice: str) -> str:
    """Return what a first batch means, in words; one that begins with `warning` ends with the advice."""
    seen = (
        f"first batch: logits have standard deviation {first.deviation:.2g}; the true class has p < 1e-7 for "
        f"{100 * first.dead:.0f} % of the samples"
    )
    if math.isfinite(first.deviation) and first.dead <= MOST_DEAD:
        return seen
    meaning = (
        "with frozen weights this large a net may fall into one class for all and stay there, as Conv4 does and "
        "the FCN of --preset=best does not"
    )
    return f"warning: {seen}; {meaning}; if the accuracy does not rise, {advice}."
