"""What a task is made of: how modules are called, which optimisers there are, and metrics."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

from ssm import learners
from ssm.errors import UserError
from ssm.optim import sgdw
from ssm.training.batches import plain_batch
from ssm.training.task import accuracy, apply_module, one_sample, rated
from tests.support.tasks import make_task, masked

X = jnp.arange(12.0).reshape(4, 3)


class Says(nn.Module):
    """Returns what it was called with."""

    @nn.compact
    def __call__(self, x, train=False, valid=None):
        return x, train, valid


class OtherNames(nn.Module):
    @nn.compact
    def __call__(self, x, y, *, training, deterministic):
        return x + y, training, deterministic


class Dropped(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.BatchNorm(use_running_average=not train)(x)
        return nn.Dropout(0.5, deterministic=not train)(x)


@pytest.mark.parametrize("train", [True, False])
def test_a_module_is_given_what_it_names(train):
    valid = jnp.array([True, True, False, True])
    (x, was_train, was_valid), _ = apply_module(Says(), {}, X, train=train, valid=valid)
    assert x is X and was_train is train and was_valid is valid
    (total, training, deterministic), _ = apply_module(OtherNames(), {}, (X, X), train=train, valid=valid)
    np.testing.assert_array_equal(total, 2 * X)
    assert (training, deterministic) == (train, not train)
    (plain, rest) = apply_module(nn.Sequential([jnp.tanh]), {}, X, train=train, valid=valid)
    np.testing.assert_array_equal(plain, jnp.tanh(X))
    assert not rest


def test_collections_change_in_training_alone_and_the_key_serves_dropout():
    variables = Dropped().init(jax.random.key(0), X, train=False)
    first, changed = apply_module(Dropped(), variables, X, train=True, key=jax.random.key(1))
    again, _ = apply_module(Dropped(), variables, X, train=True, key=jax.random.key(1))
    other, _ = apply_module(Dropped(), variables, X, train=True, key=jax.random.key(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    chex.assert_trees_all_equal_structs(changed, {"batch_stats": variables["batch_stats"]})
    assert np.any(changed["batch_stats"]["BatchNorm_0"]["mean"])
    _, rest = apply_module(Dropped(), variables, X, train=False)
    assert not rest


def test_an_optimiser_is_a_transformation_or_a_function_of_the_rates():
    params = {"a": jnp.array([1.0, -2.0])}

    def step(optimizer, learning_rate, weight_decay):
        made = rated(optimizer)(learning_rate, weight_decay)
        return made.update(params, made.init(params), params)[0]

    chex.assert_trees_all_equal(step(optax.sgd(0.5), 9.0, 9.0), {"a": jnp.array([-0.5, 1.0])})
    chex.assert_trees_all_equal(step(optax.sgd, 0.25, 9.0), {"a": jnp.array([-0.25, 0.5])})
    expected = sgdw(0.25, 0.5).update(params, sgdw(0.25, 0.5).init(params), params)[0]
    chex.assert_trees_all_equal(step(sgdw, 0.25, 0.5), expected)
    coupled = partial(sgdw, momentum=0.0, decay="coupled", nesterov=False)
    chex.assert_trees_all_close(step(coupled, 0.25, 0.5), {"a": jnp.array([-0.375, 0.75])})
    chex.assert_trees_all_close(jax.jit(partial(step, sgdw))(0.25, 0.5), expected)
    with pytest.raises(UserError, match=r"optimizer must be an optax transformation, or .*; got 'adam'"):
        rated("adam")


def test_accuracy_is_one_value_for_each_sample():
    logits = jnp.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(accuracy(logits, jnp.array([1, 1, 1])), [True, False, True])
    places = jnp.stack([logits, logits[::-1]])  # two samples of three places each
    np.testing.assert_allclose(accuracy(places, jnp.array([[1, 1, 1], [1, 0, 0]])), [2 / 3, 2 / 3], rtol=1e-6)


def test_one_sample_has_the_shape_and_type_of_its_batch():
    inputs = {"image": np.ones((5, 2, 3), np.uint8), "age": np.ones(5, np.float32)}
    found = one_sample(plain_batch, (inputs, np.zeros(5, np.int32)))
    chex.assert_trees_all_equal(found, {"image": np.zeros((1, 2, 3), np.uint8), "age": np.zeros(1, np.float32)})
    chex.assert_trees_all_equal_shapes_and_dtypes(found, jax.tree.map(lambda leaf: leaf[:1], inputs))


@pytest.mark.parametrize(("values", "batch"), [(784, 1000), (32 * 32 * 3, 250), (6, 130_650), (10_000_000, 1)])
def test_evaluation_takes_as_many_samples_at_a_time_as_memory_should_hold(values, batch):
    task = make_task(masked(learners.signed()))
    assert task.evaluation_batch == 130_650
    chex.assert_equal(
        type(task)(**{**vars(task), "example": np.zeros((1, values), np.float32)}).evaluation_batch, batch
    )
