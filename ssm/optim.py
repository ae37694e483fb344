"""SGD with decoupled weight decay as the authors' program runs it, and schedules as arrays of the step."""

from typing import Literal

import jax.numpy as jnp
import optax
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

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
    does: that decides how sparse the nets get.  `coupled` adds weight_decay * v to the gradient (the L2 form, as
    `torch.optim.SGD`), which at lr 0.05 is 20 times weaker.  Build it inside the step: its state does not depend on
    the rates.  Source: Loshchilov and Hutter 2019; reference/ledger.md, rows 1 and 2.
    """
    step = optax.chain(optax.scale(-jnp.asarray(learning_rate)), optax.trace(decay=momentum, nesterov=nesterov))
    if decay == "decoupled":
        return optax.chain(step, optax.add_decayed_weights(-jnp.asarray(weight_decay)))
    return optax.chain(optax.add_decayed_weights(jnp.asarray(weight_decay)), step)


def exponential(
    step: Int[ArrayLike, "..."], *, rate: ArrayLike, steps: ArrayLike, staircase: bool = True
) -> Float[Array, "..."]:
    """Return the factor of an exponential schedule at a step: rate ** (step / steps), whole powers if `staircase`.

    Both the learning rate and the weight decay are multiplied by it.
    """
    power = jnp.asarray(step, jnp.float32) / steps
    return jnp.asarray(rate, jnp.float32) ** (jnp.floor(power) if staircase else power)
