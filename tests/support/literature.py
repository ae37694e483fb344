"""Golden values of the related work's own programs, and the two tiny nets on which they were made.

    x, y, kernels = inputs("mlp")
    loss = objective("mlp")  # of a dictionary of kernels
    learner = learners.rigl(density=0.4, steps=8, every=2)
    params, state = learner.init(jax.random.key(0), kernels)
    after = train(learner, loss, params, state, sgd(0.1, momentum=0.9), steps=3)

A net's layers are the keys of its kernels: `dense1`, `dense2`, or `conv`.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from jax import Array

from ssm import losses, optim
from ssm.initializers import he, uniform
from ssm.learners import Layers, Learner, Step
from ssm.learners.base import is_by_layer
from ssm.runs.experiment import Result
from ssm.runs.experiment import train as train_seeds
from ssm.supermask import Supermask

REPORT = "SSM_GOLDEN_REPORT"
"""The variable of the environment with the path of the report."""
FOLDER = Path(__file__).parents[1] / "golden" / "literature"
KEY = jax.random.key(0)


@cache
def golden(method: str) -> dict[str, Any]:
    """Return a method's part of the golden file: its rules, cases and tables."""
    return json.loads((FOLDER / f"{method}.json").read_text(encoding="utf-8"))


def inputs(net: str) -> tuple[Array, Array, dict[str, Array]]:
    """Return a net's batch of inputs, its labels, and its kernels by layer."""
    given = golden("inputs")["inputs"][net]
    return jnp.asarray(given["x"], jnp.float32), jnp.asarray(given["y"]), arrays(given["weights"])


def scores(net: str) -> dict[str, Array]:
    """Return a net's scores by layer."""
    return arrays(golden("inputs")["inputs"][net]["scores"])


def arrays(layers: Mapping[str, Any]) -> dict[str, Array]:
    """Return lists of numbers by layer as float32 arrays."""
    return {path: jnp.asarray(leaf, jnp.float32) for path, leaf in layers.items()}


def signed_constants(kernels: Layers) -> dict[str, Array]:
    """Return sign(kernel) * sqrt(2 / fan_in) by layer, which the cases call `signed_constant`."""
    return {
        path: jnp.sign(kernel) * np.float32(np.sqrt(2 / np.prod(kernel.shape[:-1]))) for path, kernel in kernels.items()
    }


def mlp(kernels: Layers, x: Array, activation: Callable[[Array], Array] = jax.nn.relu) -> Array:
    return activation(x @ kernels["dense1"]) @ kernels["dense2"]


def conv(kernels: Layers, x: Array, activation: Callable[[Array], Array] = jax.nn.relu) -> Array:
    kernel = kernels["conv"]
    axes = jax.lax.conv_dimension_numbers(x.shape, kernel.shape, ("NHWC", "HWIO", "NHWC"))
    found = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=axes)
    return activation(found).mean((1, 2))


NETS: dict[str, Callable[..., Array]] = {"mlp": mlp, "conv": conv}


def true_logit(logits: Array, labels: Array) -> Array:
    """Return minus the logit of each sample's class: what `nll_loss` makes of a net without log-softmax."""
    return -jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]


def objective(net: str, loss: losses.Loss = losses.cross_entropy) -> Callable[[Layers], Array]:
    """Return the mean loss of a net's batch as a function of its effective kernels."""
    x, y, _ = inputs(net)
    return lambda kernels: loss(NETS[net](kernels, x), y).mean()


def sgd(learning_rate: float, *, momentum: float = 0.0, nesterov: bool = False, decay: float = 0.0) -> Any:
    """Return SGD with coupled weight decay, as the cases name it."""
    return optim.sgdw(learning_rate, decay, momentum=momentum, nesterov=nesterov, decay="coupled")


class Trained(NamedTuple):
    """What a few steps end with; `losses` and `penalties` before each, and the gradients of the learner's params."""

    losses: list[float]
    params: Layers
    state: Layers
    opt: Any
    penalties: list[float]
    gradients: list[Layers]


def train(
    learner: Learner,
    objective: Callable[[Layers], Array],
    params: Layers,
    state: Layers,
    optimizer: optax.GradientTransformation,
    steps: int = 3,
    *,
    first: int = 0,
    opt: Any = None,
    key: Array = KEY,
) -> Trained:
    """Train for some steps on the same batch, in the trainer's order (`ssm.training.step`).

    objective: of the effective kernels, in which the penalty is not yet.  first: number of the first step, to go on
    with the params, state and opt of an earlier call.
    """
    opt = optimizer.init(params) if opt is None else opt
    found, penalties, gradients = [], [], []
    for number in range(first, first + steps):
        now = jnp.int32(number), jax.random.fold_in(key, number), params, state, opt
        after, (value, penalty), gradient = _step(learner, objective, optimizer, *now)
        params, state, opt = after.params, after.state, after.opt
        found.append(float(value))
        penalties.append(float(penalty))
        gradients.append(gradient)
    return Trained(found, params, state, opt, penalties, gradients)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _step(learner: Learner, objective: Any, optimizer: Any, number: Array, key: Array, params, state, opt):
    weights_key, update_key, finish_key = (jax.random.fold_in(key, purpose) for purpose in (0, 2, 3))

    def whole(params):
        value = objective(learner.weights(params, state, weights_key))
        penalty = jnp.zeros(()) if learner.penalty is None else learner.penalty(params, state)
        return value + penalty, (value, penalty)

    gradients, values = jax.grad(whole, has_aux=True)(params)
    before = Step(gradients, params, state, opt)
    if learner.update is not None:
        before = learner.update(update_key, number, before)
    updates, opt = optimizer.update(before.grads, before.opt, before.params)
    after = before._replace(params=optax.apply_updates(before.params, updates), opt=opt)
    if learner.finish is not None:
        after = learner.finish(finish_key, number, before, after)
    return after, values, gradients


def held(opt: Any, params: Layers) -> list[Layers]:
    """Return what an optimiser's state holds by layer: the velocity, say, which `sgd` has minus-lr times PyTorch's."""
    own = is_by_layer(params)
    return [node for node in jax.tree.leaves(opt, is_leaf=own) if own(node)]


def gradient(learner: Learner, objective: Callable[[Layers], Array], params: Layers, state: Layers) -> Layers:
    """Return the gradient of the learner's params, without penalty and weight decay."""
    return jax.jit(jax.grad(lambda params: objective(learner.weights(params, state, KEY))))(params)


def check_scores(learner: Learner, case: Mapping[str, Any], params: Layers, state: Layers, *, first: int = 0) -> None:
    """Say that a learner of scores does what its program did in a case: mask, gradient, and three steps of SGD."""
    loss = objective(case["net"])
    same(jax.jit(learner.masks)(params, state), case["mask"])
    after = train(learner, loss, params, state, sgd(0.1, momentum=0.9, decay=1e-4), first=first)
    assert learner.penalty is None  # or it would be in the gradients
    close(after.gradients[0], case["grad_scores"])
    close(after.losses, case["losses_of_3_steps"])
    close(after.params, case["scores_after_3_steps"])


def close(found: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-7) -> None:
    """Say that numbers, or arrays by layer, are those of a golden case."""
    if isinstance(expected, Mapping):
        assert found.keys() == expected.keys()
        for path, value in expected.items():
            _close(found[path], value, rtol, atol, path)
    else:
        _close(found, expected, rtol, atol)


def _close(found: Any, expected: Any, rtol: float, atol: float, where: str = "") -> None:
    array, wanted = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    np.testing.assert_allclose(array, wanted, rtol=rtol, atol=atol, err_msg=where)
    if wanted.size and (size := np.abs(wanted).max()):
        _written("numbers", float(np.abs(array - wanted).max() / size))


def _written(kind: str, difference: float) -> None:
    """Write a comparison down where tests.support.golden_report asks for it."""
    if path := os.environ.get(REPORT):
        test = Path(os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]).stem
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{test}\t{kind}\t{difference}\n")


def same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Say that masks by layer are those of a golden case."""
    assert found.keys() == expected.keys()
    for path, value in expected.items():
        np.testing.assert_array_equal(np.asarray(found[path]), value, err_msg=path)
        _written("masks", 0.0)


def short_training(learner: Learner, seeds: Sequence[int] = (0, 1)) -> tuple[Supermask, Result]:
    """Return a small masked net and what an epoch on 64 random samples makes of it: 8 steps, for each seed."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(64, 10)).astype(np.float32), rng.integers(0, 4, 64).astype(np.int32)
    net = Supermask(nn.Sequential([nn.Dense(12), nn.elu, nn.Dense(4)]), learner=learner, kernel_init=uniform(he()))
    optimizer = partial(optim.sgdw, decay="coupled")
    return net, train_seeds(net, data=data, test=data, seeds=seeds, epochs=1, batch_size=8, optimizer=optimizer)


def seed_alone(learner: Learner) -> Result:
    """Return two seeds' short training, after saying that one of them is the same alone, bit for bit."""
    both, alone = short_training(learner)[1], short_training(learner, [1])[1]
    assert both.seeds == [0, 1] and not both.failures
    chex.assert_trees_all_equal(jax.tree.map(lambda leaf: leaf[1:], both.variables), alone.variables)
    return both
