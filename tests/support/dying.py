"""Seeds of a small FCN some of whose hidden units are dead for good after one epoch, and others after a few."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from ssm.recipes import build
from ssm.recipes.config import Config, resolve
from ssm.training.loop import Trainer, make_trainer
from tests.support.groups import one_device, with_layers, with_start

DYING = {3: (30, 14), 5: (10, 20), 7: (0, 0)}
"""By seed: units of the first hidden layer, of 90, that die at once, and later."""
TRAINED = {3: [120, 94, 94, 94, 78, 78, 78], 5: [120, 120, 120, 120, 94, 94, 94], 7: [120] * 7}
"""By seed: hidden units, of 120, that are trained in each epoch."""


def dying_config(dataset, **overrides) -> Config:
    """Return the configuration: weights that nothing trains have a third less of their scores after each epoch."""
    values = {"epochs": 7, "batch_size": 32, "width": 0.3, "learning_rate": 0.02, "momentum": 0.5}
    values |= {"weight_decay": 0.05, "decay_rate": 0.1, "decay_epochs": 5, **overrides}
    named = {"model": "fcn", "method": "signed", "preset": "default", "dataset": "mnist"}
    return resolve(**named, samples=len(dataset.train_labels), overrides=values)


def dying_trainer(dataset, *, live: bool = True, devices=None, loop="map", resumable=False, **overrides) -> Trainer:
    """Return a trainer under which leaving out units is always worth it."""
    config = dying_config(dataset, **overrides)
    task = build.task_of(config, dataset, live=live)
    if task.hidden is not None:
        task = replace(task, hidden=task.hidden._replace(worth=0.0))
    train, test, order = build.parts(config, dataset)
    options = {"devices": devices or one_device(), "loop": loop, "resumable": resumable}
    return with_start(make_trainer(task, train, test, order=order, **options), _with_dying_units)


def _with_dying_units(state, begin):
    first, second = (jnp.asarray(state.params.layers[f"Dense_{number}/kernel"]) for number in range(2))
    for place, seed in enumerate(jax.device_get(begin.seed)):
        now, later = DYING[int(seed)]
        start, middle, end = 5, 5 + now, 5 + now + later
        first = first.at[place, start:middle].multiply(0.02)
        # What feeds them is above the threshold of 0.01, what they feed is below: they are not used, and decay.
        first = first.at[place, middle:end].set(0.03 * jnp.sign(first[place, middle:end]))
        second = second.at[place, :, start:end].multiply(0.02)
    return with_layers(state, Dense_0=first, Dense_1=second)
