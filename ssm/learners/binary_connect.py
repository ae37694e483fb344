"""BinaryConnect: latent weights are trained, and each is replaced by its sign; BNN for nets of sign activations."""

from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from ssm.initializers import fans, uniform
from ssm.learners.base import Learner, layerwise
from ssm.learners.options import require_one_of
from ssm.learners.straight_through import straight_through

Size = Annotated[Literal["one", "glorot"], "Size H of a layer's weights: 1, or sqrt(1.5 / (fan_in + fan_out))."]


def binary_connect(
    *,
    stochastic: Annotated[bool, "Draw signs in training, +1 with the chance (W / H + 1) / 2, clipped."] = False,
    test: Annotated[Literal["binary", "real"], "Test the binary weights, or the latent ones."] = "binary",
    size: Size = "one",
) -> Learner:
    """Return the learner of BinaryConnect: weight = H sign(W), with W trained, and clipped to [-H, H] after each step.

    The params are the latent kernels W, which start uniform in (-H, H), whatever the kernels are.  They get the
    gradient at the binary weight as it is, and the optimiser's step times sqrt((fan_in + fan_out) / 1.5) before they
    are clipped.  A W of exactly 0 becomes -H.  Masks are the signs.

    Source: Courbariaux, Bengio and David 2015, and their program (BinaryConnect); no layer is exempt there, and its
    CIFAR-10 run is stochastic and tests the latent weights.  It is easily overlooked that it scales the step.

    Raises UserError for another test or size.
    """
    require_one_of(test, "test", ("binary", "real"))
    require_one_of(size, "size", ("one", "glorot"))

    def init(key, kernel):
        glorot = (1.5 / sum(fans(kernel.shape))) ** 0.5
        bound = glorot if size == "glorot" else 1.0
        state = {"size": jnp.asarray(bound, kernel.dtype), "rate": jnp.asarray(1 / glorot, kernel.dtype)}
        return uniform(lambda *fans: bound / 3**0.5)(key, kernel.shape, kernel.dtype), state

    def mask(latent, state):
        return jnp.where(latent > 0, 1, -1).astype(latent.dtype)

    def weight(latent, state, key):
        if key is None and test == "real":
            return latent
        chance = jnp.clip((latent / state["size"] + 1) / 2, 0, 1)
        plus = jax.random.bernoulli(key, chance) if stochastic and key is not None else latent > 0
        return straight_through(jnp.where(plus, state["size"], -state["size"]), latent)

    def finish(key, step, before, after):
        def limited(old, new, state):
            return jnp.clip(old + state["rate"] * (new - old), -state["size"], state["size"])

        return after._replace(params=jax.tree.map(limited, before.params, after.params, after.state))

    return layerwise(init, weight, mask, finish=finish, elementwise=True)


def bnn(*, size: Size = "one") -> Learner:
    """Return the learner of binarised neural networks: `binary_connect` without draws, of a net of sign activations.

    Those are the net's own matter (`ssm.ops.activations.sign`), as is batch norm after every layer.  Source: Hubara,
    Courbariaux, Soudry, El-Yaniv and Bengio 2016, and their program (BinaryNet).  Raises UserError for another size.
    """
    return binary_connect(size=size)
