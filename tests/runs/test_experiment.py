"""ssm.train: any net, any arrays, many seeds."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

import ssm
from ssm.learners import dense
from ssm.runs import experiment
from ssm.runs.run import RunOptions
from tests.support.runs import Crash, crashing

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(4, 6)).astype(np.float32)


def points(count):
    labels = np.arange(count) % 4
    return (CENTRES[labels] + RNG.normal(0, 0.3, (count, 6))).astype(np.float32), labels


DATA, TEST = points(203), points(40)


class Dropped(nn.Module):
    """Dense layers with dropout and batch statistics; bias and scales are its other parameters."""

    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(32)(x))
        x = nn.Dropout(0.1, deterministic=not train)(nn.elu(x))
        return nn.Dense(4)(x)


def sequential():
    return ssm.Supermask(nn.Sequential([nn.Dense(32), nn.elu, nn.Dense(4)]))


def train(net, **options):
    usual = {"data": DATA, "test": TEST, "epochs": 3, "batch_size": 32, "seeds": 2}
    return ssm.train(net, **usual | options)


@pytest.fixture(scope="module")
def result():
    return train(sequential(), seeds=[3, 1], epochs=8)


def test_a_sequential_net_learns(result):
    assert result.seeds == [1, 3] and not result.failures
    assert result.final("test_accuracy").min() > 0.9
    assert {name: (mask.shape, mask.dtype) for name, mask in result.masks.items()} == {
        "layers_0": ((2, 6, 32), np.int8),
        "layers_2": ((2, 32, 4), np.int8),
    }
    assert [(row["seed"], row["epoch"]) for row in result.history] == [(s, e) for s in (1, 3) for e in range(1, 9)]


def test_the_variables_are_those_of_the_masks_and_the_accuracy(result):
    net = sequential()
    for place in range(2):
        variables = jax.tree.map(lambda leaf, at=place: leaf[at], result.variables)
        masks = net.masks(variables)
        for name, mask in result.masks.items():
            np.testing.assert_array_equal(masks[f"{name}/kernel"], mask[place])
        hits = net.apply(variables, TEST[0]).argmax(-1) == TEST[1]  # type: ignore[union-attr]
        assert hits.mean() == pytest.approx(result.final("test_accuracy")[place])


@pytest.mark.slow
def test_a_group_too_large_for_the_memory_is_halved(result, monkeypatch):
    real = experiment.train_members

    def train_members(trainer, members, *rest, **more):
        if len(members) > 1:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")
        return real(trainer, members, *rest, **more)

    monkeypatch.setattr(experiment, "train_members", train_members)
    logged = []
    halved = train(sequential(), seeds=[3, 1], epochs=8, options=RunOptions(log=logged.append))
    assert len(logged) == 1 and "for 2 seeds at once, 1 are trained together now" in logged[0]
    chex.assert_trees_all_equal(halved.variables, result.variables)
    assert [row["test_accuracy"] for row in halved.history] == [row["test_accuracy"] for row in result.history]


def test_a_seed_is_the_same_alone_in_a_group_and_in_other_groups(result):
    alone = train(sequential(), seeds=[3], epochs=8)
    groups = train(sequential(), seeds=[1, 2, 3], epochs=8, options=RunOptions(group=2))
    for name, mask in result.masks.items():
        np.testing.assert_array_equal(alone.masks[name][0], mask[1])
        np.testing.assert_array_equal(groups.masks[name][[0, 2]], mask)


def test_frozen_weights_stay_as_they_were_drawn(result):
    start = train(sequential(), seeds=[1, 3], epochs=1, learning_rate=0.0, weight_decay=0.0)
    kernels = [
        {path: state.kernel for path, state in one.variables["frozen"]["layers"].items()} for one in (result, start)
    ]
    chex.assert_trees_all_equal(*kernels)


@pytest.mark.slow
def test_dropout_and_batch_statistics():
    again = [train(ssm.Supermask(Dropped(), others="trained"), epochs=4) for _ in range(2)]
    chex.assert_trees_all_equal(again[0].variables, again[1].variables)
    averages = again[0].variables["batch_stats"]["net"]["BatchNorm_0"]["mean"]
    assert averages.shape == (2, 32) and np.abs(averages).max() > 0
    assert again[0].final("test_accuracy").min() > 0.5


def test_images_stay_bytes_and_are_standardised(digits):
    seen = []

    class Seen(nn.Module):
        @nn.compact
        def __call__(self, x):
            seen.append((x.shape[1:], str(x.dtype)))
            return nn.Dense(4)(x.reshape(len(x), -1))

    grey = digits.train_images[..., 0]
    result = train(ssm.Supermask(Seen()), data=(grey, digits.train_labels), test=(grey[:40], digits.train_labels[:40]))
    assert set(seen) == {((28, 28, 1), "float32")} and result.masks["Dense_0"].shape == (2, 784, 4)


def test_trees_of_inputs_and_targets_another_loss_and_metric():
    class Sum(nn.Module):
        @nn.compact
        def __call__(self, parts):
            return nn.Dense(1)(jnp.concatenate([parts["a"], parts["b"]], -1))[:, 0]

    x = {"a": DATA[0][:, :2], "b": DATA[0][:, 2:]}
    y = {"sum": DATA[0].sum(-1)}
    error = lambda outputs, targets: jnp.square(outputs - targets["sum"])  # noqa: E731
    data = (x, y)
    rates = {"optimizer": optax.adam, "learning_rate": 0.05, "schedule": optax.cosine_decay_schedule(1.0, 100)}
    result = train(ssm.Supermask(Sum(), learner=dense()), data=data, test=data, epochs=15, loss=error, metrics={"error": error}, **rates)
    assert result.final("test_error").max() < 0.5
    assert "test_accuracy" not in result.history[0] and result.history[-1]["learning_rate"] < 0.05


@pytest.mark.slow
def test_several_labels_a_sample():
    symbols = np.arange(60 * 5).reshape(60, 5) % 3
    net = ssm.Supermask(nn.Sequential([nn.Embed(3, 16), nn.Dense(3)]))
    result = train(net, data=(symbols, symbols), test=(symbols, symbols), epochs=20, batch_size=16)
    assert result.final("test_accuracy").min() > 0.9


@pytest.mark.slow
def test_a_transformation_is_used_as_it_is_and_a_factory_is_given_traced_rates():
    own = train(sequential(), optimizer=optax.sgd(0.1), learning_rate=7.0)
    factory = train(sequential(), optimizer=optax.sgd, learning_rate=0.1, schedule=lambda step: np.ones(step.shape))
    for name, mask in own.masks.items():
        np.testing.assert_array_equal(mask, factory.masks[name])


def test_a_plateau_stops_each_seed_by_itself():
    rule = ssm.PlateauRule(kind="plateau", factor=0.1, patience=1, cooldown=0, min_delta=0.5, reductions=1)
    result = train(sequential(), schedule=rule, epochs=30)
    assert len(result.history) < 60


def test_a_batch_function_is_given_a_key_in_training_alone():
    keys = []

    def noisy(data, index, key):
        keys.append(key is None)
        x, y = jax.tree.map(lambda array: array[index], data)
        return (x if key is None else x + 0.1 * jax.random.normal(key, x.shape)), y

    assert train(sequential(), batch=noisy).final("test_accuracy").min() > 0.5
    assert set(keys) == {True, False}


def test_a_folder_is_completed_and_never_another_net(tmp_path):
    out = tmp_path / "mine"
    first = train(sequential(), out=out)
    assert first.folder == out and first.variables is None
    more = train(sequential(), out=out, seeds=3)
    assert more.seeds == [0, 1, 2]
    for name, mask in first.masks.items():
        np.testing.assert_array_equal(more.masks[name][:2], mask)
        np.testing.assert_array_equal(train(sequential()).masks[name], mask)
    other = ssm.Supermask(sequential().module, learner=ssm.learners.signed(threshold=ssm.thresholds.absolute(0.02)))
    with pytest.raises(ssm.UserError, match="another net, learner, loss or optimiser"):
        train(other, out=out)
    with pytest.raises(ssm.UserError, match="other data"):
        train(sequential(), out=out, data=points(203))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"schedule": optax.cosine_decay_schedule(1.0, 63)}, "another schedule"),
        ({"loss": lambda outputs, y: 2 * experiment.mean_cross_entropy(outputs, y)}, "another net, learner, loss"),
    ],
)
def test_seeds_in_training_are_resumed_by_the_same_program_alone(tmp_path, other, message):
    def loss(outputs, y):
        return experiment.mean_cross_entropy(outputs, y)

    usual = {"schedule": optax.cosine_decay_schedule(1.0, 21), "loss": loss, "out": tmp_path / "mine", "seeds": 1}
    if "loss" in other:
        other["loss"].__qualname__ = loss.__qualname__
    with pytest.raises(Crash):
        train(sequential(), **usual, options=RunOptions(**crashing(2)))
    for _ in range(2):
        with pytest.raises(ssm.UserError, match=message):
            train(sequential(), **usual | other)
    resumed = train(sequential(), **usual)
    with pytest.raises(ssm.UserError, match=message):
        train(sequential(), **usual | other)
    assert resumed.history[-1]["train_loss"] == train(sequential(), **usual | {"out": None}).history[-1]["train_loss"]


def test_a_folder_that_holds_no_run_is_left_as_it_is(tmp_path):
    own = tmp_path / "checkpoints" / "of another program"
    own.parent.mkdir()
    own.touch()
    with pytest.raises(ssm.UserError, match="holds no run: nothing in it is removed"):
        train(sequential(), out=tmp_path, options=RunOptions(fresh=True))
    assert own.exists()


@pytest.mark.parametrize(("given", "seeds"), [(np.int64(2), [0, 1]), (jnp.int32(1), [0]), ((3, np.int32(1)), [1, 3]), (np.array([4]), [4])])
def test_seeds_are_whole_numbers_of_any_kind(given, seeds):
    assert train(sequential(), seeds=given, epochs=1).seeds == seeds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"net": nn.Dense(4)}, "net must be a masked module"),
        ({"seeds": []}, "seeds must be"),
        ({"seeds": [-1]}, "seeds must be"),
        ({"seeds": "10"}, "seeds must be"),
        ({"seeds": [0.7, 1.2]}, "seeds must be"),
        ({"epochs": 0}, "epochs must be a whole number above 0"),
        ({"batch_size": 204}, "larger than the data: 203 samples"),
        ({"data": DATA[0]}, "data must be a pair"),
        ({"test": (TEST[0], TEST[1][:-1])}, "test: all arrays need the same first axis"),
        ({"data": (np.zeros((203, 28, 28), np.uint8), DATA[1])}, "must both be images"),
        ({"optimizer": "adam"}, "optimizer must be an optax transformation"),
        ({"schedule": 0.1}, "schedule must be a function of the step"),
        ({"loss": lambda outputs, targets: jnp.mean(outputs)}, "loss must give one value for each sample"),
        ({"metrics": {"error": partial(lambda o, t: o[:, 0])}, "out": "x"}, "one of metrics must have this name"),
    ],
)
def test_wrong_arguments_are_one_message(options, message):
    options = dict(options)
    net = options.pop("net", None) or sequential()
    with pytest.raises(ssm.UserError, match=message):
        train(net, **options)


@pytest.mark.slow
def test_layers_with_a_learner_of_their_own():
    rule = ssm.learners.by_layer({"layers_2": dense(), "*": ssm.learners.signed()})
    module = nn.Sequential([nn.Dense(32), nn.elu, nn.Dense(4)])
    result = train(ssm.Supermask(module, learner=rule), seeds=[3])
    assert set(result.masks) == {"layers_0"}
    row = result.history[-1]
    assert row["remaining_weights"] == row["layers_0:remaining"] and "layers_2:remaining" not in row
    alone = ssm.Supermask(module, learner=rule).init(jax.random.key(0), jnp.ones((1, 6)))
    last = result.variables["params"]["net"]["layers_2"]["kernel"]
    assert last.shape == (1, *alone["params"]["net"]["layers_2"]["kernel"].shape)


@pytest.mark.slow
def test_a_module_with_a_collection_named_frozen_and_metadata():
    class Own(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x * self.variable("frozen", "scale", lambda: jnp.full(6, 2.0)).value
            init = nn.with_partitioning(nn.initializers.lecun_normal(), ("in", "out"))
            return nn.Dense(4)(nn.elu(nn.Dense(32, kernel_init=init)(x)))

    net = ssm.Supermask(Own())
    result = train(net, seeds=[3, 1], epochs=8)
    assert result.final("test_accuracy").min() > 0.8
    one = jax.tree.map(lambda leaf: leaf[0], result.variables)
    np.testing.assert_array_equal(one["frozen"]["own"]["scale"], np.full(6, 2.0))
    hits = np.argmax(net.apply(one, TEST[0]), 1) == TEST[1]
    assert hits.mean() == pytest.approx(result.final("test_accuracy")[0], abs=1e-6)
    # The seeds' variables, stacked as they come.
    np.testing.assert_array_equal(net.masks(result.variables)["Dense_0/kernel"], result.masks["Dense_0"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": "0.1"}, "learning_rate must be a number of at least 0"),
        ({"learning_rate": optax.cosine_decay_schedule(1.0, 3)}, "a schedule is `schedule`"),
        ({"weight_decay": -1.0}, "weight_decay must be a number of at least 0"),
        ({"loss": "mse"}, "loss must be a function"),
        ({"metrics": ["accuracy"]}, "metrics must be functions by name"),
        ({"metrics": {"accuracy": 1.0}}, "accuracy must be a function"),
        ({"metrics": {"loss": optax.squared_error}}, "a column of the name 'loss' already"),
        ({"batch": 32}, "batch must be a function"),
        ({"order": np.zeros(203, int)}, "order must be the numbers 0 to 202"),
        ({"options": {"group": 2}}, "options must be ssm.RunOptions"),
    ],
)
def test_options_of_another_kind_are_refused(options, message):
    with pytest.raises(ssm.UserError, match=message):
        train(sequential(), **options)


@pytest.mark.parametrize("options", [{"group": 0}, {"loop": "scan"}, {"on_bad_seed": "ignore"}])
def test_execution_options_of_another_kind_are_refused(options):
    with pytest.raises(ssm.UserError, match="must be"):
        RunOptions(**options)
