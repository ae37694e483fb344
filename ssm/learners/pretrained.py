"""A trained start for a learner: the plain weights are trained for some steps, and the learner begins with them."""

from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from jax import lax

from ssm.errors import UserError, require
from ssm.learners.base import Layers, Learner, Step, is_by_layer, map_by_layer


def pretrained(
    learner: Learner,
    steps: Annotated[int, "Training steps before the learner begins."],
) -> Learner:
    """Return the learner that trains the plain kernels for so many steps, and then goes on as another learner.

    learner: whose `init` gets the trained kernels, with a key of its own, once; its `update` and `finish` run from then
    on and count steps from 0 again.  What the optimiser holds for the layers is then 0, and so is its count of steps
    where the same part of it has one (Adam's).  Before, all masks are 1, and there is no penalty and no noise.

    A layer's params are `dense`, the plain kernel, and `own`, what the learner trains; its state is the learner's,
    `own`, and whether it has `started`.  Of the params, the ones that are not in use get no gradient; weight decay may
    move them, which changes nothing.  Several methods were published as tuning a trained net: TTQ, LR-Net.

    Raises UserError for what is no learner, or for a negative number of steps.
    """
    if not isinstance(learner, Learner):
        raise UserError(f"pretrained takes a learner and steps, pretrained(ttq(), 1000) say; got {learner!r}.")
    require(steps, "steps", "at least 0 and finite", lambda value: 0 <= value < float("inf"))

    def both(kernels: Layers, own: tuple[Layers, Layers], started: Any) -> tuple[Layers, Layers]:
        params = {path: {"dense": kernel, "own": own[0][path]} for path, kernel in kernels.items()}
        return params, {path: {"own": own[1][path], "started": jnp.asarray(started)} for path in kernels}

    def init(key, kernels):
        return both(kernels, learner.init(key, kernels), steps == 0)

    def chosen(found, params, state, otherwise):
        """Return what the learner has found of each layer, or else something of its plain kernel."""
        return {
            path: jnp.where(state[path]["started"], value, otherwise(params[path]["dense"]))
            for path, value in found.items()
        }

    def weights(params, state, key):
        return chosen(learner.weights(_own(params), _own(state), key), params, state, lambda kernel: kernel)

    def masks(params, state):
        return chosen(learner.masks(_own(params), _own(state)), params, state, jnp.ones_like)

    def variances(params, state):
        assert learner.variances is not None
        return chosen(learner.variances(_own(params), _own(state)), params, state, jnp.zeros_like)

    def draw(params, state, key):
        assert learner.draw is not None
        return chosen(learner.draw(_own(params), _own(state), key), params, state, lambda kernel: kernel)

    def penalty(params, state):
        assert learner.penalty is not None
        started = jnp.all(jnp.stack([layer["started"] for layer in state.values()]))
        return jnp.where(started, learner.penalty(_own(params), _own(state)), 0)

    def update(key, step, now):
        assert learner.update is not None
        own = partial(learner.update, key, step - steps)
        return lax.cond(step >= steps, lambda: _with_own(now, own(_own_step(now))), lambda: now)

    def finish(key, step, before, after):
        def begun():
            kernels = {path: layer["dense"] for path, layer in after.params.items()}
            new = both(kernels, learner.init(key, kernels), True)
            params, state = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), new, after[1:3])
            return after._replace(params=params, state=state, opt=_reset(after.opt, after.params))

        if learner.finish is not None:
            own = partial(learner.finish, key, step - steps, _own_step(before))
            after = lax.cond(step >= steps, lambda: _with_own(after, own(_own_step(after))), lambda: after)
        return lax.cond(step + 1 == steps, begun, lambda: after)

    return Learner(
        init,
        weights,
        masks,
        update=learner.update and update,
        finish=finish,
        penalty=learner.penalty and penalty,
        variances=learner.variances and variances,
        draw=learner.draw and draw,
        draws=learner.draws,
        has_masks=learner.has_masks,
    )


def _own(layers: Layers) -> dict[str, Any]:
    return {path: layer["own"] for path, layer in layers.items()}


def _own_step(now: Step) -> Step:
    """Return the learner's part of everything."""
    opt = map_by_layer(lambda value, _: value["own"], now.opt, now.params)
    return Step(_own(now.grads), _own(now.params), _own(now.state), opt)


def _with_own(now: Step, own: Step) -> Step:
    """Return everything with another part of the learner in it."""
    by_layer = is_by_layer(now.params)

    def put(old: Any, new: Any) -> Any:
        return {path: {**old[path], "own": new[path]} for path in old} if by_layer(old) else new

    return Step(*(jax.tree.map(put, old, new, is_leaf=by_layer) for old, new in zip(now, own, strict=True)))


def _reset(opt: Any, layers: Layers) -> Any:
    """Return an optimiser's state in which 0 is whatever it holds for the layers, and all that stands beside it."""
    by_layer = is_by_layer(layers)

    def holds(node: Any) -> bool:
        return by_layer(node) or (isinstance(node, tuple) and any(by_layer(child) for child in node))

    return jax.tree.map(lambda node: jax.tree.map(jnp.zeros_like, node) if holds(node) else node, opt, is_leaf=holds)
