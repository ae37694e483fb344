"""The training step: effective weights, loss, gradient, update; all that happens to one seed between two batches."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

from ssm.learners import Layers, Step
from ssm.supermask import Supermask, joined
from ssm.supermask.reparameterisation import noisy
from ssm.training.halves import Halves, added, in_halves
from ssm.training.task import Task


class Params(NamedTuple):
    """What is trained: the learner's params by layer, and the module's other trained parameters, nested."""

    layers: Layers
    others: Mapping[str, Any]


class State(NamedTuple):
    """What a seed carries from step to step.

    learner: the learner's state by layer.  fixed: the module's other parameters that are not trained.  rest: the
    module's other collections (averages of batch statistics, say).
    """

    params: Params
    learner: Layers
    optimizer: Any
    rest: Mapping[str, Any]
    fixed: Mapping[str, Any]


class StepInputs(NamedTuple):
    """One step's batch and rates: its number from 0, the batch, which of its samples are no padding, keys, rates."""

    number: Int[Array, ""]
    inputs: Any
    targets: Any
    valid: Float[Array, " batch"]
    key: Array
    learning_rate: Float[Array, ""]
    weight_decay: Float[Array, ""]
    halves: Halves | None = None


def training_step(task: Task, net: Supermask, state: State, now: StepInputs) -> tuple[State, dict[str, Array]]:
    """Return the state after a step, and the sums over the batch of the loss and the metrics."""
    learner = net.learner
    weights_key, module_key, update_key = (jax.random.fold_in(now.key, purpose) for purpose in range(3))
    samples = jnp.sum(now.valid)

    def objective(params: Params, inputs, targets, valid) -> tuple[Array, tuple[dict[str, Array], Any]]:
        weights = effective_weights(task, net, state._replace(params=params), weights_key)
        variables = {"params": weights, **state.rest}
        options = {"train": True, "valid": valid > 0, "key": module_key}
        with noisy(layer_variances(task, net, params, state), weights_key):
            outputs, rest = task.apply(net.module, variables, inputs, **options)
        sums = {
            name: jnp.sum(values(outputs, targets).astype(valid.dtype) * valid)
            for name, values in {"loss": task.loss, **task.metrics}.items()
        }
        value = sums["loss"] / samples
        if learner.penalty is not None:
            value += learner.penalty(params.layers, state.learner)
        return value, (sums, rest)

    gradient = partial(jax.grad(objective, has_aux=True), state.params)
    if now.halves is None:
        gradients, (sums, rest) = gradient(now.inputs, now.targets, now.valid)
    else:
        both = in_halves((now.inputs, now.targets, now.valid))
        gradients, (sums, rest) = added(now.halves, lambda half: gradient(*half), both)
    if learner.update is not None:
        updated = learner.update(update_key, now.number, _own(gradients, state))
        gradients, state = gradients._replace(layers=updated.grads), _with_own(state, updated)
    optimizer = task.optimizer(now.learning_rate, now.weight_decay)
    updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.params)
    params = optax.apply_updates(state.params, updates)
    after = state._replace(params=params, optimizer=optimizer_state)
    if learner.finish is not None:
        before, finish_key = _own(gradients, state), jax.random.fold_in(now.key, 3)
        after = _with_own(after, learner.finish(finish_key, now.number, before, _own(gradients, after)))
    return after._replace(rest=rest), sums


def effective_weights(task: Task, net: Supermask, state: State, key: Array | None) -> dict[str, Any]:
    """Return the plain params of the wrapped module; the key is None in evaluation."""
    weights = net.learner.weights(state.params.layers, state.learner, key)
    return joined(oriented(task, weights), state.fixed, state.params.others)


def drawn_weights(task: Task, net: Supermask, state: State, key: Array) -> dict[str, Any]:
    """Return the plain params of the wrapped module as a learner draws them for a test."""
    draw = net.learner.draw
    assert draw is not None
    return joined(oriented(task, draw(state.params.layers, state.learner, key)), state.fixed, state.params.others)


def oriented(task: Task, layers: Any) -> Any:
    """Return layers' values with every matrix turned between [in, out] and the orientation in which it is trained."""
    return jax.tree.map(lambda leaf: leaf.T if jnp.ndim(leaf) == 2 else leaf, layers) if task.transposed else layers


def is_params(node: Any) -> bool:
    """Return whether a part of an optimiser's state has the structure of what is trained."""
    return isinstance(node, Params)


def layer_variances(task: Task, net: Supermask, params: Params, state: State) -> Layers:
    """Return the variances of the weights, by path, where a learner has them."""
    found = net.learner.variances
    return {} if found is None else oriented(task, found(params.layers, state.learner))


def _own(gradients: Params, state: State) -> Step:
    """Return a learner's own part of everything."""
    own = jax.tree.map(lambda node: node.layers if is_params(node) else node, state.optimizer, is_leaf=is_params)
    return Step(gradients.layers, state.params.layers, state.learner, own)


def _with_own(state: State, own: Step) -> State:
    """Return a state with a learner's own part in it."""
    optimizer = jax.tree.map(
        lambda node, new: node._replace(layers=new) if is_params(node) else new,
        state.optimizer,
        own.opt,
        is_leaf=is_params,
    )
    params = state.params._replace(layers=own.params)
    return state._replace(params=params, learner=own.state, optimizer=optimizer)
