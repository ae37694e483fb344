"""Tasks made by hand, without a recipe: a small net of one's own on numbers of one's own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from ssm import losses
from ssm.learners import Learner
from ssm.supermask import Supermask
from ssm.training.batches import INIT, plain_batch, reshuffled, seed_key
from ssm.training.loop import Member, Trainer, make_trainer
from ssm.training.task import Task, accuracy, apply_module
from tests.support.groups import one_device

BATCH = 8


def numbers(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs [samples, 6] and labels of three classes that they tell."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(samples) % 3).astype(np.int32)
    centres = np.random.default_rng(0).normal(size=(3, 6))
    return (centres[labels] + 0.3 * rng.normal(size=(samples, 6))).astype(np.float32), labels


TRAIN, TEST = numbers(20, 1), numbers(9, 2)  # 20 samples: the last batch is a short one
LAYERS = {"layers_0/kernel": (6, 5), "layers_2/kernel": (5, 3)}


def masked(learner: Learner, **options: Any) -> Supermask:
    """Return a net of two layers, whose biases are trained as they are."""
    return Supermask(nn.Sequential([nn.Dense(5), nn.elu, nn.Dense(3)]), learner=learner, others="trained", **options)


def make_task(net: Supermask, optimizer: Any = None, **options: Any) -> Task:
    """Return the task of a net on `TRAIN`; the optimiser is a transformation, its rates inside."""
    optimizer = optax.sgd(0.1) if optimizer is None else optimizer
    given = {"epochs": 3, "batch_size": BATCH, "loss": losses.cross_entropy, "batch": plain_batch, **options}
    return Task(
        net=lambda numbers: net,
        numbers={},
        example=np.zeros((1, 6), np.float32),
        apply=apply_module,
        metrics={"accuracy": accuracy},
        optimizer=lambda learning_rate, weight_decay: optimizer,
        **given,
    )


def trainer_of(net: Supermask, optimizer: Any = None, *, devices=None, loop="map", order=None, **options) -> Trainer:
    """Return a trainer of a net, for snapshots too."""
    task = make_task(net, optimizer, **options)
    return make_trainer(task, TRAIN, TEST, order=order, devices=devices or one_device(), loop=loop, resumable=True)


def members(*seeds: int) -> list[Member]:
    return [Member(seed=seed, schedule=lambda steps: (0.1 + 0 * steps, 0 * steps), key=f"own/{seed}") for seed in seeds]


def plain_loop(net: Supermask, seed: int, optimizer: optax.GradientTransformation, epochs: int = 3):
    """Return a seed's variables, and its mean losses of each epoch, as optax and Flax alone train the net.

    The short last batch is one of its own size here, where the trainer's is padded.
    """
    key, (inputs, labels) = seed_key(seed), map(jnp.asarray, TRAIN)
    variables = dict(jax.jit(net.init)(jax.random.fold_in(key, INIT), inputs[:1]))
    params, state, means = variables["params"], optimizer.init(variables["params"]), []

    @jax.jit
    def step(params, state, index):
        def loss_of(params):
            logits = net.apply({**variables, "params": params}, inputs[index])
            loss = losses.cross_entropy(logits, labels[index]).mean()
            if net.learner.penalty is None:
                return loss, loss
            layers = {path: params["net"][path.split("/")[0]]["kernel"] for path in LAYERS}
            return loss + net.learner.penalty(layers, variables["frozen"]["layers"]), loss

        gradients, loss = jax.grad(loss_of, has_aux=True)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    for epoch in range(epochs):
        order, total = np.asarray(reshuffled(key, epoch, len(labels))), 0.0
        for start in range(0, len(labels), BATCH):
            index = order[start : start + BATCH]
            params, state, loss = step(params, state, index)
            total += float(loss) * len(index)
        means.append(total / len(labels))
    return {**variables, "params": params}, means
