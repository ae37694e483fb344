import jax
import jax.numpy as jnp
import numpy as np

from ssm.training.seeds import loop_over


def test_a_function_that_is_looped_over_seeds_is_traced_once():
    traced = []

    def function(number):
        traced.append(number)
        return number + 1

    found = jax.jit(lambda stacked, count: loop_over(function, stacked, count))(jnp.arange(3), np.int32(3))
    assert found.tolist() == [1, 2, 3]
    assert len(traced) == 1
