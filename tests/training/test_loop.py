"""Training groups of seeds as recipes ask for it: what is recorded, and that no seed touches another."""

import dataclasses
from copy import deepcopy
from functools import partial

import chex
import jax
import numpy as np
import pytest
from flax import linen as nn

from ssm.errors import UserError
from ssm.models import MODELS, ResNet, elu
from ssm.models.resnet import normalise
from ssm.recipes import build
from ssm.recipes.config import resolve
from ssm.training.batches import count_samples, fixed_order, steps_per_epoch
from ssm.training.epoch import EpochInputs
from ssm.training.loop import make_trainer, train_members
from tests.support.groups import as_result, begun, members_of, one_device, rows_of, same, train, with_layers, with_start

EPOCHS = 3


def config(digits, **overrides):
    method, model = overrides.pop("method", "signed"), overrides.pop("model", "fcn")
    values = {"epochs": EPOCHS, "batch_size": 32, "learning_rate": 0.02, **overrides}
    if values.get("schedule", "plateau" if model.startswith("resnet") else "exponential") == "exponential":
        values.setdefault("decay_epochs", 1.0)
    return resolve(
        model=model,
        method=method,
        preset="default",
        dataset="mnist" if model == "fcn" else "cifar10",
        samples=len(digits.train_labels),
        overrides=values,
    )


def made(digits, loop="map", folded=None, **overrides):
    """Return a configuration's trainer on one device, and a function from seeds to its members."""
    own = config(digits, **overrides)
    return build.trainer(own, digits, devices=one_device(), loop=loop, folded=folded), partial(members_of, own)


def run(digits, seeds, *, devices=1, loop="map", **overrides):
    own = config(digits, **overrides)
    trainer = build.trainer(own, digits, devices=jax.devices()[:devices], loop=loop)
    return train(trainer, members_of(own, seeds))


@pytest.fixture(scope="module")
def alone(digits):
    return run(digits, [3])


def test_a_net_learns_and_says_so(alone):
    history = alone.history
    assert [row["epoch"] for row in history] == [1, 2, 3]
    assert history[-1]["test_accuracy"] > 0.9 and history[-1]["train_loss"] < history[0]["train_loss"]


def test_records_fit_the_final_masks(alone):
    row, masks = alone.history[-1], alone.masks[3]
    assert {name: mask.shape for name, mask in masks.items()} == {
        "Dense_0": (784, 300),
        "Dense_1": (300, 100),
        "Dense_2": (100, 4),
    }
    total = sum(mask.size for mask in masks.values())
    assert row["remaining_weights"] == pytest.approx(sum((mask != 0).sum() for mask in masks.values()) / total)
    for name, mask in masks.items():
        assert mask.dtype == np.int8 and set(np.unique(mask)) <= {-1, 0, 1}
        assert row[f"{name}:minus"] == pytest.approx((mask == -1).mean())
        assert row[f"{name}:plus"] == pytest.approx((mask == 1).mean())
        assert row[f"{name}:zero"] == pytest.approx((mask == 0).mean())
    assert 0 < row["flips"] < 1
    assert alone.finals == [
        {
            "seed": 3,
            "test_loss": row["test_loss"],
            "test_accuracy": row["test_accuracy"],
            "remaining_weights": row["remaining_weights"],
            "frozen": None,
            "failed_epoch": None,
            "failed_reason": None,
        }
    ]


def test_a_seed_in_a_group_equals_the_seed_alone_bit_for_bit(digits, alone):
    same(alone, run(digits, [0, 3, 5]), 3)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [2, 8])
def test_a_seed_does_not_depend_on_the_devices(digits, alone, devices):
    same(alone, run(digits, [1, 3, 4], devices=devices), 3)


@pytest.mark.slow
def test_vectorised_seeds_agree_within_float_tolerance(digits, alone):
    """`vmap` makes other (batched) matrix products: equal to rounding, so a mask may differ where a score is at tau."""
    other = run(digits, [0, 3], loop="vmap")
    for name, mask in alone.masks[3].items():
        assert np.mean(mask != other.masks[3][name]) < 1e-3
    chex.assert_trees_all_close(alone.params[3], other.params[3], rtol=1e-7, atol=2e-5)


def test_the_folded_step_equals_the_general_one_bit_for_bit(digits, alone):
    trainer, members = made(digits, folded=False)
    general = train(trainer, members([3]))
    layers = alone.variables[3]["frozen"]["layers"]
    assert set(layers) == {f"Dense_{index}/kernel" for index in range(3)}
    scores = {
        path.split("/")[0]: {"kernel": alone.params[3]["net"][path.split("/")[0]]["kernel"] * state.signs}
        for path, state in layers.items()
    }
    same(alone._replace(params={3: {"net": scores}}), general, 3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["binary", "baseline"])
def test_other_methods(digits, method):
    result = run(digits, [0], method=method)
    values = {"binary": {0, 1}, "baseline": {1}}[method]
    for mask in result.masks[0].values():
        assert set(np.unique(mask)) == values
    assert result.history[-1]["test_accuracy"] > 0.9
    assert (result.history[-1]["remaining_weights"] == 1) == (method == "baseline")


@pytest.mark.slow
def test_a_fixed_order_is_used_by_all_seeds_and_a_reshuffled_one_is_each_seeds_own(digits):
    trainer, members = made(digits, order="fixed")
    np.testing.assert_array_equal(trainer.order, fixed_order(count_samples(trainer.train)))
    result = train(trainer, members([3]))
    turned = train(trainer._replace(order=trainer.order[::-1]), members([3]))
    assert result.history[0]["train_loss"] != turned.history[0]["train_loss"]
    assert made(digits)[0].order is None


@pytest.mark.slow
def test_a_seeds_own_fixed_order_is_its_first(digits, alone):
    result = run(digits, [0, 3], order="fixed_by_seed")
    same(result, run(digits, [3], order="fixed_by_seed"), 3)
    losses = [[row["train_loss"] for row in one.history if row["seed"] == 3] for one in (result, alone)]
    assert losses[0][0] == losses[1][0] and losses[0][1] != losses[1][1]


@pytest.mark.slow
def test_bfloat16_products(digits, alone):
    result = run(digits, [3], precision="bfloat16")
    assert result.history[-1]["test_accuracy"] > 0.9
    assert result.history[-1]["train_loss"] != alone.history[-1]["train_loss"]


def test_one_compilation_serves_all_epochs_rates_and_seeds(digits):
    """A program traces the loss once in training and once in evaluation, for its loop over seeds."""
    chex.clear_trace_counter()
    own = config(digits)
    task = build.make_task(own, image_shape=digits.train_images.shape[1:], classes=digits.classes)
    traced = chex.assert_max_traces(n=2)(lambda outputs, targets: task.loss(outputs, targets))
    train_data, test_data, order = build.parts(own, digits)
    trainer = make_trainer(
        dataclasses.replace(task, loss=traced), train_data, test_data, order=order, devices=one_device(), loop="map"
    )
    result = train(trainer, members_of(own, [0, 1]))
    train(trainer, members_of(own, [8, 9]))
    other = config(digits, learning_rate=0.1, weight_decay=1e-3, decay_rate=0.5, threshold="absolute:0.02")
    assert train(trainer, members_of(other, [0, 1])).history[0]["train_loss"] != result.history[0]["train_loss"]
    with pytest.raises(AssertionError, match="traced > 2 times"):  # what it would say: three seeds are another shape
        train(trainer, members_of(own, [0, 1, 2]))


def poison(trainer, *which):
    """Return the trainer with one score of these seeds (by their place in the group) not a number at the start."""

    def change(state, begin):
        kernel = state.params.layers["Dense_1/kernel"]
        return with_layers(state, Dense_1=kernel.at[np.array(which), 0, 0].set(np.nan))

    return with_start(trainer, change)


def test_a_seed_gone_wrong_is_excluded_and_the_others_do_not_change(digits):
    trainer, members = made(digits)
    whole = train(trainer, members([0, 1, 2]))
    result = train(poison(trainer, 1), members([0, 1, 2]))
    assert [final["failed_epoch"] for final in result.finals] == [None, 1, None]
    assert result.finals[1]["failed_reason"].startswith("NaN or infinity among the scores of Dense_")
    assert set(result.masks) == {0, 2} and {row["seed"] for row in result.history} == {0, 2}
    for seed in (0, 2):
        same(whole, result, seed)


def test_a_seed_with_an_empty_layer_is_excluded_too(digits):
    def change(state, begin):  # the decay alone moves the scores of what does not pass
        return with_layers(state, Dense_1=state.params.layers["Dense_1/kernel"].at[1].set(0.0))

    trainer, members = made(digits, learning_rate=1e-9)
    whole = train(trainer, members([0, 1]))
    result = train(with_start(trainer, change), members([0, 1]))
    assert [final["failed_reason"] for final in result.finals] == [None, "no weight is left in Dense_1"]
    same(whole, result, 0)


def test_a_bad_seed_may_end_the_run(digits):
    trainer, members = made(digits)
    with pytest.raises(UserError, match=r"seed 7 failed in epoch 1: NaN or .* \(--on-bad-seed=stop\)"):
        train_members(poison(trainer, 1), members([5, 7]), on_bad_seed="stop")


def test_when_every_seed_has_gone_wrong_training_ends(digits):
    trainer, members = made(digits)
    reports = []
    result = train(poison(trainer, 0, 1), members([4, 5]), reports.append)
    assert [final["failed_epoch"] for final in result.finals] == [1, 1]
    assert not result.masks and not result.history and len(reports) == 1


# Epochs dispatched before the one before them is read, as on a GPU


@pytest.fixture(scope="module")
def long(digits):
    trainer, members = made(digits, epochs=6, width=0.1)
    return trainer, members, train(trainer, members([0, 1, 2]))


def noting(trainer, noted):
    """Return the trainer that notes as an epoch is dispatched, ahead of others where it may be."""

    def epoch_of(sizes):
        def epoch(*arguments):
            noted.append("dispatched")
            return trainer.program.epoch_of(sizes)(*arguments)

        return epoch

    return trainer._replace(ahead=True, program=trainer.program._replace(epoch_of=epoch_of))


def test_an_epoch_is_dispatched_before_the_one_before_it_is_read(long):
    trainer, members, result = long
    noted = []
    ahead = noting(trainer, noted)
    outcomes = train_members(
        ahead, members([0, 1, 2]), lambda now: noted.append(now.epoch), due=lambda epoch: False, variables=True
    )
    # The first is not followed, as it compiles; after every fourth, hidden units may be left out.
    two = ["dispatched"] * 2
    assert noted == ["dispatched", 1, *two, 2, "dispatched", 3, 4, *two, 5, 6]
    for seed in range(3):
        same(as_result(outcomes), result, seed)


def test_nothing_is_dispatched_ahead_of_a_snapshot(long):
    trainer, members, result = long
    noted, kept = [], {}
    options = {
        "due": lambda epoch: epoch == 3,
        "after_epoch": lambda epoch, take: kept.update({epoch: deepcopy(take())}),
    }
    keyed = [dataclasses.replace(one, key=f"{one.seed}") for one in members([0, 1, 2])]
    train_members(noting(trainer, noted), keyed, lambda now: noted.append(now.epoch), **options)
    assert noted[:8] == ["dispatched", 1, *["dispatched"] * 2, 2, 3, "dispatched", 4]
    assert [snapshot.epoch for snapshot in kept.values()] == [1, 3, 4]
    for begin in kept.values():
        resumed = as_result(train_members(trainer, keyed, begin=begin, variables=True))
        for seed in range(3):
            same(resumed, result, seed)


def test_a_seed_gone_wrong_is_excluded_though_its_next_epoch_runs(long):
    trainer, members, result = long
    outcomes = train_members(
        noting(poison(trainer, 1), []), members([0, 1, 2]), due=lambda epoch: False, variables=True
    )
    assert [one.final["failed_epoch"] for one in outcomes] == [None, 1, None]
    assert [len(one.history) for one in outcomes] == [6, 0, 6]
    for seed in (0, 2):
        same(as_result(outcomes), result, seed)


def test_layers_that_start_dead_are_named(digits):
    trainer, members = made(digits, threshold="absolute:0.2", epochs=1)
    with pytest.warns(UserWarning, match="Dense_0, Dense_1: every mask is 0 at the start"):
        train(trainer, members([0]))


# Plateau schedules

PLATEAU = {"schedule": "plateau", "patience": 1, "plateau_factor": 0.5, "reductions": 2, "width": 0.1}
PLATEAU |= {"epochs": 5, "weight_decay": 0.01}
DULL = 7


def dull(trainer):
    """Return the trainer with a seed in which nothing passes, so that just the decay moves its scores.

    All of them are 0.005, but for one weight from the first pixel to the first unit, one from the second unit on, and
    one unit's weights to all classes, whose gradients cancel out.
    """
    kept = {"Dense_0": (0, 0), "Dense_1": (1, 1), "Dense_2": (slice(None), 2)}  # [out, in]

    def change(state, begin):
        kernels = {}
        for layer, where in kept.items():
            kernel = np.array(jax.device_get(state.params.layers[f"{layer}/kernel"]))
            for place in np.flatnonzero(np.asarray(begin.seed) == DULL):
                kernel[place] = 0.005
                kernel[(place, *where)] = 0.02
            kernels[layer] = trainer.program.place(kernel)
        return with_layers(state, **kernels)

    return with_start(trainer, change)


def plateaued(digits, seeds, *report, loop="map"):
    trainer, members = made(digits, loop=loop, **PLATEAU)
    return train(dull(trainer), members(seeds), *report)


@pytest.fixture(scope="module")
def group(digits):
    return plateaued(digits, [0, DULL, 3])


def test_a_seed_on_a_plateau_has_lower_rates_and_stops_early(group):
    rows = rows_of(group, DULL)
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    np.testing.assert_allclose([row["train_loss"] for row in rows], np.log(4), rtol=1e-6)
    np.testing.assert_allclose([row["learning_rate"] for row in rows], [0.02, 0.02, 0.01])
    np.testing.assert_allclose([row["weight_decay"] for row in rows], [0.01, 0.01, 0.005])
    assert group.finals[1]["failed_epoch"] is None


def test_a_stopped_seed_keeps_its_state(group):
    # Seven steps an epoch: two epochs with the whole decay, one with half of it, and then no more.
    expected = 0.005 * (1 - 0.01) ** 14 * (1 - 0.005) ** 7
    for leaf in jax.tree.leaves(group.params[DULL]):
        np.testing.assert_allclose(np.abs(leaf) / np.where(np.abs(leaf) < 0.01, 1, 4), expected, rtol=1e-5)


def test_the_others_go_on_as_if_alone(digits, group):
    assert [len(rows_of(group, seed)) for seed in (0, 3)] == [5, 5]
    assert rows_of(group, 3)[-1]["train_loss"] < rows_of(group, 3)[0]["train_loss"]
    same(group, plateaued(digits, [3]), 3)


def test_training_ends_when_the_last_seed_stops(digits, group):
    reports = []
    result = plateaued(digits, [DULL], reports.append)
    assert len(reports) == 3
    same(group, result, DULL)


@pytest.mark.slow
def test_vectorised_seeds_stop_one_by_one_too(digits, group):
    result = plateaued(digits, [0, DULL, 3], loop="vmap")
    assert [len(rows_of(result, seed)) for seed in (0, DULL, 3)] == [5, 3, 5]
    alike(group, result, DULL)
    alike(group, result, 3)


def alike(one, other, seed):
    """The same up to rounding; a mask may differ where a score is at its threshold."""
    for name, mask in one.masks[seed].items():
        assert np.mean(mask != other.masks[seed][name]) < 1e-3
    chex.assert_trees_all_close(one.params[seed], other.params[seed], rtol=1e-5, atol=2e-5)
    for left, right in zip(rows_of(one, seed), rows_of(other, seed), strict=True):
        for name in ("train_loss", "test_loss"):
            assert left[name] == pytest.approx(right[name], rel=1e-4)


def an_epoch(made, seeds, rates=(0.0, 0.0), scales=None, active=None, epoch=0):
    """Return the states after an epoch with constant rates, zero by default, and what it says, on the host."""
    trainer, members = made
    program, task = trainer.program, trainer.task
    steps = steps_per_epoch(count_samples(trainer.train), task.batch_size) * task.passes
    scales = np.ones(len(seeds), np.float32) if scales is None else np.asarray(scales, np.float32)
    given = EpochInputs(
        np.asarray(seeds, np.uint32),
        *(np.outer(scales, np.full(steps, rate, np.float32)) for rate in rates),
        np.ones(len(seeds), bool) if active is None else np.asarray(active),
    )
    more = program.share(np.uint32(epoch)), trainer.order, trainer.train, trainer.test
    return jax.device_get(program.epoch(begun(trainer, members(seeds)), program.place(given), *more))


def seed_of(tree, place):
    return jax.tree.map(lambda leaf: leaf[place], tree)


def test_each_seed_has_its_own_rates(digits):
    own = trainer, members = made(digits, **PLATEAU)
    found, _ = an_epoch(own, [3, 3, 3], (0.02, 0.01), scales=[1, 0.5, 0.25], active=[True, True, False])
    halved, _ = an_epoch(own, [3, 3, 3], (0.01, 0.005))
    started = jax.device_get(begun(trainer, members([3, 3, 3])))
    chex.assert_trees_all_equal(seed_of(found, 1), seed_of(halved, 1))
    chex.assert_trees_all_equal(seed_of(found, 2), seed_of(started, 2))
    for kernel in jax.tree.leaves(found.params):
        assert (kernel[0] != kernel[1]).any() and (kernel[1] != kernel[2]).any()


class Small(ResNet):
    """A ResNet's stem, one more layer and its end: all the kinds of variables, for a tenth of the time to compile."""

    @nn.compact
    def __call__(self, x, *, train=False, valid=None):
        for index in range(2):
            options = {"use_bias": False, "conv_general_dilated": self.conv_general_dilated}
            x = nn.Conv(4, (3, 3), kernel_init=self.kernel_init, **options)(x)
            x = elu(normalise(x, kind=self.batch_norm, name=f"BatchNorm_{index}", train=train, valid=valid))
        return nn.Dense(self.classes, use_bias=False, kernel_init=self.kernel_init)(x.mean(axis=(1, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["statistics", "affine"])
def test_no_seed_touches_anothers_batch_statistics(pictures, monkeypatch, kind):
    monkeypatch.setitem(MODELS, "resnet20", Small)
    options = {"model": "resnet20", "batch_norm": kind, "batch_size": 8, "epochs": 4, "threshold": "absolute:0.01"}
    group = run(pictures, [0, 3], **options)
    assert rows_of(group, 0)[-1]["test_loss"] != rows_of(group, 3)[-1]["test_loss"]
    alike(group, run(pictures, [0, 3], loop="vmap", **options), 3)
    same(group, run(pictures, [3], **options), 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"model": "conv2", "width": 0.0625, "augment": "crop_flip_standardize"},
        {"model": "resnet20", "width": 0.125, "batch_norm": "frozen", "threshold": "absolute:0.01"},
        {"model": "resnet20", "width": 0.125, "batch_norm": "statistics", "method": "baseline"},
        {"model": "resnet20", "width": 0.125, "batch_norm": "affine", "method": "baseline"},
    ],
    ids=["conv2", "frozen", "statistics", "affine"],
)
def test_a_seed_of_the_papers_nets_alone_equals_the_seed_in_a_group(pictures, monkeypatch, options):
    monkeypatch.setitem(MODELS, "resnet20", partial(ResNet, blocks=1))  # three blocks are quicker to compile than nine
    options = {"batch_size": 8, "epochs": 2, **options}
    same(run(pictures, [0, 3], **options), run(pictures, [3], **options), 3)


TINY = {"width": 0.1, "batch_size": 8, "epochs": 2}


@pytest.mark.slow
@pytest.mark.parametrize("augment", ["shift", "crop_flip", "crop_flip_standardize"])
def test_an_augmented_seed_alone_is_the_seed_in_a_group(pictures, augment):
    group = run(pictures, [0, 3], augment=augment, **TINY)
    same(group, run(pictures, [3], augment=augment, **TINY), 3)


@pytest.mark.slow
def test_every_epoch_and_seed_is_augmented_anew(pictures):
    """With rates of 0 and one order of the data nothing else differs between epochs, nor between two equal nets."""
    losses = {}
    for augment in ("none", "shift", "crop_flip"):
        own = made(pictures, augment=augment, order="fixed", **TINY)
        losses[augment] = [an_epoch(own, [3], epoch=epoch)[1].train["loss"][0] for epoch in (0, 1, 1)]
    assert len(set(losses["none"])) == 1
    for augment in ("shift", "crop_flip"):
        assert losses[augment][0] != losses[augment][1] == losses[augment][2]
        assert losses[augment][0] != losses["none"][0]


@pytest.mark.slow
def test_two_passes_see_every_sample_twice(pictures):
    """With rates of 0 a pass's mean loss is every sample's, once; with others two passes take twice the steps."""
    once, twice = (made(pictures, passes=passes, **TINY) for passes in (1, 2))
    (_, one), (_, two) = an_epoch(once, [3]), an_epoch(twice, [3])
    chex.assert_trees_all_close(two.train, one.train, rtol=1e-6)
    assert set(two.train) == {"loss", "accuracy"}
    # Two passes of an epoch are two epochs of one: the same orders of a seed.  No schedule moves the rates here.
    same_rates = {"schedule": "plateau", "patience": 10}
    one = run(pictures, [3], **{**TINY, **same_rates})
    two = run(pictures, [3], passes=2, **{**TINY, **same_rates, "epochs": 1})
    chex.assert_trees_all_equal((one.masks[3], one.params[3]), (two.masks[3], two.params[3]))
    assert two.history[0]["train_loss"] == pytest.approx(np.mean([row["train_loss"] for row in one.history]))
