"""Every model with every method of the paper: one step of training, as a run takes it, at the paper's size."""

import jax
import numpy as np
import pytest

from ssm.config import resolve
from ssm.data import Dataset
from ssm.epoch import Given
from ssm.estimate import count_masked
from ssm.presets import DATA_CLASSES, METHODS, MODEL_DATA
from ssm.train import make_trainer, schedule, train
from ssm.trees import flatten

WEIGHTS = {
    "fcn": 266_200,
    "conv2": 4_300_992,
    "conv4": 2_425_024,
    "conv6": 2_261_184,
    "conv8": 5_275_840,
    "resnet20": 248_624,
    "resnet56": 834_992,
    "resnet110": 1_668_272,  # masked; the regular net, which is the baseline's, has more
}
REGULAR_RESNET110 = 1_705_904
VALUES = {"signed": {-1, 0, 1}, "binary": {0, 1}, "baseline": {1}}
DEEP = ("resnet56", "resnet110")  # which take long to compile
SEED = 3


def made(model):
    """Eight images to train on and four to test, of the shape and the classes of the model's own data set."""
    name = MODEL_DATA[model][0]
    shape = (28, 28, 1) if name == "mnist" else (32, 32, 3)
    rng, classes = np.random.default_rng(0), DATA_CLASSES[name]

    def draw(count):
        return rng.integers(0, 256, (count, *shape), np.uint8), rng.integers(0, classes, count).astype(np.int32)

    names = tuple(map(str, range(classes)))
    return name, Dataset(name, "made by the tests", *draw(8), *draw(4), classes=classes, class_names=names)


def one_step(trainer):
    """Return the state of one seed before and after the only step of an epoch, and what the epoch says, on the host."""
    program = trainer.program
    seeds = np.asarray([SEED], np.uint32)
    state = program.start(program.place(seeds))
    before = jax.device_get(state)
    given = Given(seeds, np.ones(1, np.float32), np.ones(1, bool))
    shared = program.share((np.uint32(0), *schedule(trainer.config, 0, 1)))
    state, info = program.epoch(state, program.place(given), *shared, trainer.order, trainer.train, trainer.test)
    return before, *jax.device_get((state, info))


def cases():
    for model in MODEL_DATA:
        for method in METHODS:
            yield pytest.param(model, method, marks=[pytest.mark.slow] if model in DEEP else [])


@pytest.mark.parametrize(("model", "method"), list(cases()))
def test_one_step(model, method):
    name, dataset = made(model)
    overrides = {"epochs": 1, "batch_size": 8}
    config = resolve(model=model, method=method, preset="default", dataset=name, samples=8, overrides=overrides)
    trainer = make_trainer(config, dataset, devices=jax.devices()[:1])
    result = train(trainer, [SEED])

    (row,) = result.history
    assert np.isfinite([row["train_loss"], row["test_loss"]]).all()
    assert 0 < row["remaining_weights"] <= 1 and result.finals[0]["failed_epoch"] is None

    masks, kernels = result.masks[SEED], flatten(result.params[SEED]["net"])
    expected = REGULAR_RESNET110 if (model, method) == ("resnet110", "baseline") else WEIGHTS[model]
    assert count_masked(trainer.net, np.zeros((1, *dataset.train_images.shape[1:]), np.float32)) == expected
    assert sum(mask.size for mask in masks.values()) == expected
    for layer, mask in masks.items():
        assert mask.dtype == np.int8 and set(np.unique(mask)) <= VALUES[method]
        assert mask.shape == kernels[(*layer.split("/"), "kernel")].shape

    before, after, info = one_step(trainer)
    assert info.train_loss[0] == row["train_loss"]
    jax.tree.map(np.testing.assert_array_equal, before.form.frozen, after.form.frozen)
    jax.tree.map(np.testing.assert_array_equal, before.form.signs, after.form.signs)
    for path, scores in flatten(before.form.params).items():
        assert (scores != flatten(after.form.params)[path]).any(), path
