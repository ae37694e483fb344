import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

import ssm
from ssm.errors import UserError, require, require_function
from ssm.initializers import he, normal, signed_constant, uniform


def below_one(value):
    return value < 1


def test_numbers_in_their_range_pass_and_others_say_why():
    require(0.5, "p", "below 1", below_one)
    require(np.float32(0.5), "p", "below 1", below_one)
    with pytest.raises(UserError, match="p must be below 1, got 2"):
        require(2, "p", "below 1", below_one)
    for value in ("0.5", None, [0.5]):
        with pytest.raises(UserError, match="p must be a number below 1, got"):
            require(value, "p", "below 1", below_one)


def test_a_traced_number_passes():
    jax.jit(lambda value: require(value, "p", "below 1", below_one))(jnp.float32(2))


@pytest.mark.parametrize(
    "function",
    [lambda a, b: a, lambda a, b=1, c=2: a, lambda *a: a, lambda a, b, *, c: a, optax.squared_error, jnp.add, max],
)
def test_functions_of_so_many_arguments_pass(function):
    require_function(function, "loss", "f", 2)


@pytest.mark.parametrize("function", [lambda a: a, lambda a, b, c: a])
def test_functions_of_other_arguments_are_refused(function):
    with pytest.raises(UserError, match="loss must take 2 arguments, as f does; got <function"):
        require_function(function, "loss", "f", 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ssm.thresholds.absolute("0.01"), "threshold tau must be a number"),
        (lambda: ssm.thresholds.quantile(None), "threshold density must be a number"),
        (lambda: signed_constant("he"), "scale must be a function"),
        (lambda: uniform(0.1), "scale must be a function"),
        (lambda: normal(lambda fan_in: 1.0), "scale must take 2 arguments"),
        (lambda: ssm.learners.signed(scores=0.1), "scores must be a function"),
        (lambda: ssm.learners.binary(threshold=0.01), "threshold must be a function"),
        (lambda: ssm.Supermask(nn.Dense(2), kernel_init=he()), "kernel_init must take 3 arguments"),
        (lambda: ssm.layerwise(lambda key: key, max, max), "init must take 2 arguments"),
    ],
)
def test_what_is_given_in_place_of_something_else_is_said_at_once(make, message):
    with pytest.raises(UserError, match=message):
        make()
