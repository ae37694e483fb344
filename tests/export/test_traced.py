"""A loaded net used first inside the user's own jit, grad, vmap, scan or module: what it keeps is never traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from ssm.data import standardized
from ssm.errors import UserError
from ssm.export import flax_module
from ssm.export.conversion import from_run
from tests.support.artifact_nets import as_run, config, untrained
from tests.support.artifacts import tiny
from tests.support.quick import quick

RNG = np.random.default_rng(0)


def raw(count, shape=(2, 2, 1)):
    return RNG.integers(0, 256, (count, *shape), np.uint8)


class Outer(nn.Module):
    """A module of the user's, in which the net is used."""

    function: object

    @nn.compact
    def __call__(self, x):
        return self.function(x) + self.param("offset", nn.initializers.zeros, (2,))


def in_module(function):
    def call(x):
        module = Outer(function)
        return module.apply(module.init(jax.random.key(0), x), x)

    return call


TRANSFORMATIONS = {
    "jit": jax.jit,
    "vmap": lambda function: lambda x: jax.vmap(lambda one: function(one[None])[0])(x),
    "scan": lambda function: lambda x: jax.lax.scan(lambda _, one: (None, function(one[None])[0]), None, x)[1],
    "eval_shape": lambda function: lambda x: (jax.eval_shape(function, x), function(x))[1],
    "remat": jax.checkpoint,
    "module": in_module,
}


def apply(net, images):
    return net.module.apply(net.variables, net.standardize(images))


def close_over_runtime(net, images):
    return jnp.asarray(net.runtime().logits(np.zeros((1, *images.shape[1:]), np.uint8))) + apply(net, images)


USES = {
    "variables": apply,
    "logits": lambda net, images: net.logits(images),
    "compiled": lambda net, images: net.compiled(images),
    "to_dense": lambda net, images: images.reshape(len(images), -1) @ net.to_dense()["Dense_0"] @ jnp.ones((3, 2)),
    "runtime": close_over_runtime,
}


MORE = [pytest.param("variables", name, marks=pytest.mark.slow) for name in ("eval_shape", "remat", "module")]


@pytest.mark.parametrize(
    ("use", "transform"),
    quick([*((use, "jit") for use in USES), ("variables", "vmap"), ("variables", "scan"), *MORE], 2),
)
def test_first_used_inside(use, transform):
    net, function = tiny(), USES[use]
    call = TRANSFORMATIONS[transform](lambda images: function(net, images))
    for images in (raw(3), raw(1)):
        found = np.asarray(call(images))
        np.testing.assert_allclose(found, function(tiny(), images), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(net.logits(raw(2).clip(0, 0)), 0)


def test_gradients_of_images_and_of_variables():
    net = tiny()

    def loss(x):
        return net.module.apply(net.variables, x)[:, 0].sum()

    x = standardized(raw(3))
    first = jax.grad(loss)(x)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x), first, rtol=1e-5)
    np.testing.assert_allclose(jax.grad(loss)(x[:1]), first[:1], rtol=1e-5)
    assert np.abs(first).sum() > 0

    other = tiny()
    gradients = jax.jit(lambda x: jax.grad(lambda v: other.module.apply(v, x)[:, 0].sum())(other.variables))(x)
    again = jax.grad(lambda v: other.module.apply(v, x)[:, 0].sum())(other.variables)
    for found, wanted in zip(jax.tree.leaves(gradients), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*keeps no hash")  # the run is made by hand
def test_weights_that_are_drawn_again(tmp_path):
    own = config(weight_distribution="uniform", init="he", width=0.05)
    run = as_run(tmp_path, own, *untrained(own, 3, (4, 4, 1), 4), 3, (4, 4, 1), 4)
    net, images = from_run(run, 3), raw(3, (4, 4, 1))
    flax_module._initialise.cache_clear()
    first = jax.jit(lambda x: apply(net, x))
    np.testing.assert_allclose(first(images[:1]), net.logits(images)[:1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(first(images), from_run(run, 3).logits(images), rtol=1e-4, atol=1e-5)


def test_the_runtime_says_that_it_is_not_for_traced_images():
    run = tiny().runtime()
    for use in (run, run.logits, run.probabilities):
        with pytest.raises(UserError, match=r"NumPy, not inside jax\.jit: there, use net\.logits"):
            jax.jit(use)(raw(2))
