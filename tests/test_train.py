import jax
import numpy as np
import pytest

from ssm import build, gauge
from ssm.config import resolve
from ssm.epoch import make_program, reshuffled
from ssm.train import make_trainer, schedule, train

EPOCHS = 3


def config(digits, **overrides):
    method = overrides.pop("method", "signed")
    values = {"epochs": EPOCHS, "batch_size": 32, "learning_rate": 0.02, "decay_epochs": 1.0, **overrides}
    return resolve(
        model="fcn",
        method=method,
        preset="default",
        dataset="mnist",
        samples=len(digits.train_labels),
        overrides=values,
    )


def run(digits, seeds, *, devices=1, loop="map", **overrides):
    trainer = make_trainer(config(digits, **overrides), digits, devices=jax.devices()[:devices], loop=loop)
    return train(trainer, seeds)


@pytest.fixture(scope="module")
def alone(digits):
    return run(digits, [3])


def same(one, other, seed):
    for name, mask in one.masks[seed].items():
        np.testing.assert_array_equal(mask, other.masks[seed][name])
    jax.tree.map(np.testing.assert_array_equal, one.params[seed], other.params[seed])
    first, second = ([row for row in result.history if row["seed"] == seed] for result in (one, other))
    for left, right in zip(first, second, strict=True):
        assert {**left, "seconds": 0} == {**right, "seconds": 0}


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
            "test_accuracy": row["test_accuracy"],
            "remaining_weights": row["remaining_weights"],
            "failed_epoch": None,
        }
    ]


def test_a_seed_in_a_group_equals_the_seed_alone_bit_for_bit(digits, alone):
    same(alone, run(digits, [0, 3, 5]), 3)


@pytest.mark.parametrize("devices", [2, 8])
def test_a_seed_does_not_depend_on_the_devices(digits, alone, devices):
    same(alone, run(digits, [1, 3, 4], devices=devices), 3)


def test_vectorised_seeds_agree_within_float_tolerance(digits, alone):
    """`vmap` makes other (batched) matrix products: equal to rounding, so a mask may differ where a score is at tau."""
    other = run(digits, [0, 3], loop="vmap")
    for name, mask in alone.masks[3].items():
        assert np.mean(mask != other.masks[3][name]) < 1e-3
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), alone.params[3], other.params[3])


def test_the_step_without_signs_equals_the_general_one_bit_for_bit(digits, alone):
    made = config(digits)
    trainer = make_trainer(made, digits, devices=jax.devices()[:1])
    net = trainer.net
    frozen = net.init(build.seed_key(0), np.zeros((1, 28, 28, 1), np.float32))["frozen"]
    assert gauge.holds(net.learner, frozen)
    program = make_program(
        net, made, np.zeros((1, 28, 28, 1), np.float32), gauge=False, loop="map", devices=jax.devices()[:1]
    )
    same(alone, train(trainer._replace(program=program), [3]), 3)


@pytest.mark.parametrize("method", ["binary", "baseline"])
def test_other_methods(digits, method):
    result = run(digits, [0], method=method)
    values = {"binary": {0, 1}, "baseline": {1}}[method]
    for mask in result.masks[0].values():
        assert set(np.unique(mask)) == values
    assert result.history[-1]["test_accuracy"] > 0.9
    assert (result.history[-1]["remaining_weights"] == 1) == (method == "baseline")


def test_a_fixed_order_is_used_by_all_seeds_and_a_reshuffled_one_is_each_seeds_own(digits):
    trainer = make_trainer(config(digits, order="fixed"), digits, devices=jax.devices()[:1])
    result = train(trainer, [3])
    turned = train(trainer._replace(order=trainer.order[::-1]), [3])
    assert result.history[0]["train_loss"] != turned.history[0]["train_loss"]
    order = build.fixed_order(10)
    assert sorted(order.tolist()) == list(range(10)) and order.tolist() != list(range(10))
    np.testing.assert_array_equal(order, build.fixed_order(10))


def test_reshuffled_orders_are_permutations_that_differ_by_seed_and_epoch():
    orders = [reshuffled(build.seed_key(seed), epoch, 50).tolist() for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4


def test_bfloat16_products(digits, alone):
    result = run(digits, [3], precision="bfloat16")
    assert result.history[-1]["test_accuracy"] > 0.9
    assert result.history[-1]["train_loss"] != alone.history[-1]["train_loss"]


def test_one_compilation_serves_all_epochs_rates_and_seeds(digits):
    trainer = make_trainer(config(digits), digits, devices=jax.devices()[:1])
    train(trainer, [0, 1])
    assert trainer.program.epoch._cache_size() == 1
    train(trainer, [8, 9])
    other = trainer._replace(config=config(digits, learning_rate=0.1, weight_decay=1e-3, decay_rate=0.5))
    train(other, [0, 1])
    assert trainer.program.epoch._cache_size() == 1


def poison(trainer, *which):
    """Return the trainer with one score of these seeds (by their place in the group) not a number at the start."""

    def start(keys):
        state = trainer.program.start(keys)
        layer = state.form.params["net"]["Dense_1"]
        layer["kernel"] = layer["kernel"].at[np.array(which), 0, 0].set(np.nan)
        return state

    return trainer._replace(program=trainer.program._replace(start=start))


def test_a_seed_gone_wrong_is_set_aside_and_the_others_do_not_change(digits):
    trainer = make_trainer(config(digits), digits, devices=jax.devices()[:1])
    whole = train(trainer, [0, 1, 2])
    result = train(poison(trainer, 1), [0, 1, 2])
    assert [final["failed_epoch"] for final in result.finals] == [None, 1, None]
    assert set(result.masks) == {0, 2} and {row["seed"] for row in result.history} == {0, 2}
    for seed in (0, 2):
        same(whole, result, seed)


def test_when_every_seed_has_gone_wrong_training_ends(digits):
    trainer = make_trainer(config(digits), digits, devices=jax.devices()[:1])
    told = []
    result = train(poison(trainer, 0, 1), [4, 5], told.append)
    assert [final["failed_epoch"] for final in result.finals] == [1, 1]
    assert not result.masks and not result.history and len(told) == 1


def test_layers_that_start_dead_are_named(digits):
    with pytest.warns(UserWarning, match="Dense_0/kernel, Dense_1/kernel: every mask is 0 at the start"):
        make_trainer(config(digits, threshold="absolute:0.2"), digits, devices=jax.devices()[:1])


def test_the_schedule_of_an_epoch(digits):
    rates, decays = schedule(config(digits, decay_rate=0.5), 1, 7)
    np.testing.assert_allclose(rates, [0.01] * 7)
    np.testing.assert_allclose(decays, [2.5e-4] * 7)
