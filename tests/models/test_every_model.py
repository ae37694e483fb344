"""Every model with every method of the paper: one step of training, as a run takes it."""

import chex
import jax
import numpy as np
import pytest

from ssm.data import Dataset
from ssm.recipes import build
from ssm.recipes.config import resolve
from ssm.recipes.presets import DATA_CLASSES, METHODS, MODEL_DATA
from ssm.runs.estimate import count_masked
from ssm.training.epoch import EpochInputs
from ssm.trees import flatten
from tests.support.groups import begun, one_device, train

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
LARGE = ("conv4", "conv6", "conv8", "resnet20")  # to compile; with `im2col` for half as long
NARROW = {"width": 0.25, "form": "xla"}
DEEP = ("resnet56", "resnet110")  # which take long to compile
SEED = 3


@pytest.fixture(scope="module", autouse=True)
def _compiled_quickly():
    """Half the time to compile, which is nearly all that these tests do."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def made(model):
    """Eight images to train on and four to test, of the shape and the classes of the model's own data set."""
    name = MODEL_DATA[model][0]
    shape = (28, 28, 1) if name == "mnist" else (32, 32, 3)
    rng, classes = np.random.default_rng(0), DATA_CLASSES[name]

    def draw(count):
        return rng.integers(0, 256, (count, *shape), np.uint8), rng.integers(0, classes, count).astype(np.int32)

    names = tuple(map(str, range(classes)))
    return name, Dataset(name, "made by the tests", *draw(8), *draw(4), classes=classes, class_names=names)


def one_step(trainer, member):
    """Return the state of one seed before and after the only step of an epoch, and what the epoch says, on the host."""
    program = trainer.program
    state = begun(trainer, [member])
    before = jax.device_get(state)
    rates = (rate[None] for rate in member.schedule(np.arange(1)))
    given = program.place(EpochInputs(np.asarray([member.seed], np.uint32), *rates, np.ones(1, bool)))
    state, info = program.epoch(state, given, program.share(np.uint32(0)), trainer.order, trainer.train, trainer.test)
    return before, *jax.device_get((state, info))


def configure(model, method, dataset, **overrides):
    overrides = {"epochs": 1, "batch_size": 8, **overrides}
    return resolve(model=model, method=method, preset="default", dataset=dataset, samples=8, overrides=overrides)


def cases():
    """Yield the signed nets at full width; the others' convolutions are XLA's, for a quarter of the channels.

    Just the learner differs in them, and they compile in half the time; XLA's take long to run, in a scan.  Golden
    values are what every net's own forms of convolutions are tested with.
    """
    for model in MODEL_DATA:
        for method in METHODS:
            options = {"form": "im2col" if model in LARGE else "auto"} if method == "signed" else NARROW
            # The nets are tested by golden values, too; what a step is, the signed FCN shows.
            slow = (model, method) != ("fcn", "signed")
            yield pytest.param(model, method, options, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(
    ("model", "method"),
    [
        # Binary masks cover what signed ones do, and test_graph.py has the shapes of the deepest nets, slow to trace.
        pytest.param(model, method, marks=[pytest.mark.slow] if model in DEEP else [])
        for model in MODEL_DATA
        for method in METHODS
    ],
)
def test_the_masks_cover_the_papers_weights(model, method):
    name, dataset = made(model)
    net = build.build(configure(model, method, name), classes=dataset.classes)
    expected = REGULAR_RESNET110 if (model, method) == ("resnet110", "baseline") else WEIGHTS[model]
    assert count_masked(net, dataset.train_images[:1].astype(np.float32)) == expected


@pytest.mark.parametrize(("model", "method", "options"), list(cases()))
def test_one_step(model, method, options):
    name, dataset = made(model)
    config = configure(model, method, name, width=options.get("width"))
    trainer = build.trainer(config, dataset, devices=one_device(), form=options["form"])
    member = build.member(config, SEED)
    result = train(trainer, [member])

    (row,) = result.history
    assert np.isfinite([row["train_loss"], row["test_loss"]]).all()
    assert 0 < row["remaining_weights"] <= 1 and result.finals[0]["failed_epoch"] is None

    masks, kernels = result.masks[SEED], flatten(result.params[SEED]["net"])
    count = count_masked(trainer.task.net(trainer.task.numbers), dataset.train_images[:1].astype(np.float32))
    assert sum(mask.size for mask in masks.values()) == count
    for layer, mask in masks.items():
        assert mask.dtype == np.int8 and set(np.unique(mask)) <= VALUES[method]
        assert mask.shape == kernels[(*layer.split("/"), "kernel")].shape

    before, after, info = one_step(trainer, member)
    assert info.train["loss"][0] == row["train_loss"]
    chex.assert_trees_all_equal((before.learner, before.fixed), (after.learner, after.fixed))
    changed = dict(jax.tree_util.tree_leaves_with_path(after.params))
    for path, scores in jax.tree_util.tree_leaves_with_path(before.params):
        assert (scores != changed[path]).any(), path
    # Decay alone changes scores, too: a gradient has reached every layer.
    assert all(np.any(velocity) for velocity in jax.tree.leaves(after.optimizer))
