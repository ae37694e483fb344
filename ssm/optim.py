"""SGD with decoupled weight decay as the authors' program runs it, and schedules as arrays of the step."""

from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike
from jaxtyping import Float32, Int

from ssm.errors import UserError

Decay = Literal["decoupled", "coupled"]


def sgdw(
    learning_rate: ArrayLike,
    weight_decay: ArrayLike,
    *,
    momentum: ArrayLike = 0.9,
    nesterov: bool = True,
    decay: Decay = "decoupled",
) -> optax.GradientTransformation:
    """Return SGD with momentum and weight decay, for one step's (traced) learning rate and weight decay.

    The learning rate is inside the velocity: a <- momentum a - lr g, then v <- v + momentum a - lr g (Nesterov) or
    v <- v + a.  `decoupled` adds -weight_decay * v, not multiplied by the learning rate, as TensorFlow Addons' SGDW
    does: how sparse the nets become depends on it.  `coupled` adds weight_decay * v to the gradient (the L2 form, as
    `torch.optim.SGD`), which is 20 times weaker at lr 0.05.  Build it inside the step: its state does not depend on
    the rates.  Raises UserError for another `decay`.  Source: Loshchilov and Hutter 2019; docs/ledger.md, rows 1 and 2.
    """
    if decay not in get_args(Decay):
        raise UserError(f"decay must be {' or '.join(map(repr, get_args(Decay)))}; got {decay!r}.")
    step = optax.chain(optax.scale(-jnp.asarray(learning_rate)), optax.trace(decay=momentum, nesterov=nesterov))
    if decay == "decoupled":
        return optax.chain(step, optax.add_decayed_weights(-jnp.asarray(weight_decay)))
    return optax.chain(optax.add_decayed_weights(jnp.asarray(weight_decay)), step)


def adam(
    learning_rate: ArrayLike, weight_decay: ArrayLike, *, decay: Decay = "coupled"
) -> optax.GradientTransformation:
    """Return Adam (0.9, 0.999, 1e-8) with weight decay, for one step's (traced) rates; `decay` as in `sgdw`."""
    if decay not in get_args(Decay):
        raise UserError(f"decay must be {' or '.join(map(repr, get_args(Decay)))}; got {decay!r}.")
    step = optax.chain(optax.scale_by_adam(), optax.scale(-jnp.asarray(learning_rate)))
    if decay == "decoupled":
        return optax.chain(step, optax.add_decayed_weights(-jnp.asarray(weight_decay)))
    return optax.chain(optax.add_decayed_weights(jnp.asarray(weight_decay)), step)


def cosine(step: Int[np.ndarray, "..."] | int, *, steps: float, cycles: int = 1) -> Float32[np.ndarray, "..."]:
    """Return the factor of a cosine schedule that falls from 1 to 0 in `steps`, or so many times, in equal parts."""
    part = steps / cycles
    return np.asarray((1 + np.cos(np.pi * (np.asarray(step, np.float64) % part) / part)) / 2, np.float32)


def reach(state: Any, *, momentum: float, nesterov: bool) -> Any:
    """Return how far each parameter still moves at most if its gradient is 0 from now on, apart from decay towards 0.

    state: of `sgdw` with decoupled decay, after a step; the result has the parameters' structure and shapes.  Without a
    gradient the velocity shrinks by the momentum m a step: |v| m / (1 - m) in all, and m times that under Nesterov's.
    """
    velocity = optax.tree_utils.tree_get(state, "trace")
    factor = momentum / (1 - momentum) * (momentum if nesterov else 1)
    return jax.tree.map(lambda leaf: factor * jnp.abs(leaf), velocity)


def exponential(
    step: Int[np.ndarray, "..."] | int, *, rate: float, steps: float, staircase: bool = True
) -> Float32[np.ndarray, "..."]:
    """Return the factor of an exponential schedule at a step: rate ** (step / steps), whole powers if `staircase`.

    Both the learning rate and the weight decay are multiplied by it.  Computed on the host in double precision: a
    division that rounds differently would shift a step of the staircase by one training step.
    """
    power = np.asarray(step, np.float64) / steps
    return np.asarray(rate ** (np.floor(power) if staircase else power), np.float32)
