"""Parts of the paper's residual networks: the residual block, and its three kinds of batch normalisation."""

import math
from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
from flax import linen as nn
from jax import Array
from jaxtyping import Bool, Float

from ssm.errors import UserError
from ssm.models.description import EPSILON, Block, Convolution

MOMENTUM = 0.99
"""Of the running averages of batch statistics: Keras' default, which the authors' program keeps."""

BatchNorm = Literal["frozen", "statistics", "affine"]


class ResidualBlock(nn.Module):
    """A residual block: two convolutions, and a sum with its input, plain or projected.

    Input [batch, height, width, channels]; output [batch, height / stride, width / stride, size].  Layers in order:
    Conv_0 (3x3, or 1x1 in a projection block, strided), Conv_1 (3x3), and in a projection block Conv_2 (1x1,
    strided), the shortcut's.  Each has its batch normalisation, BatchNorm_0 to BatchNorm_2.  The `activation` follows
    the first convolution and the sum; in a projection block also the second convolution, before the sum.
    `conv` makes a layer of its description; `norm` is a function of x and a layer's name.
    Source: the authors' program, of which tests/golden holds the values; docs/ledger.md, row 15.
    """

    block: Block
    conv: Callable[[Convolution], nn.Conv]
    norm: Callable[..., Array]
    activation: Callable[[Array], Array]

    @nn.compact
    def __call__(self, x: Float[Array, "batch height width channels"]) -> Float[Array, "batch rows columns size"]:
        y = self.activation(self._normalised(self.block.first, x))
        y = self._normalised(self.block.second, y)
        if self.block.shortcut:
            y = self.activation(y)
            x = self._normalised(self.block.shortcut, x)
        return self.activation(x + y)

    def _normalised(self, layer: Convolution, x: Array) -> Array:
        return self.norm(self.conv(layer)(x), name=layer.norm)


class FrozenNorm(nn.Module):
    """Batch normalisation that stays as it was created, mean 0 and variance 1: it divides by sqrt(1 + epsilon).

    Input and output [..., channels].  With `affine`, a trainable `scale` and `bias` [channels] follow.
    Source: the authors' program; docs/ledger.md, row 14.
    """

    affine: bool = False

    @nn.compact
    def __call__(self, x: Float[Array, "... channels"]) -> Float[Array, "... channels"]:
        x = x * jnp.asarray(1 / math.sqrt(1 + EPSILON), x.dtype)
        if not self.affine:
            return x
        shape = (x.shape[-1],)
        scale = self.param("scale", nn.initializers.ones, shape)
        return x * scale + self.param("bias", nn.initializers.zeros, shape)


def normalise(
    x: Float[Array, "batch *pixels channels"],
    *,
    kind: BatchNorm,
    name: str | None = None,
    train: bool,
    valid: Bool[Array, " batch"] | None,
    affine: bool = False,
) -> Float[Array, "batch *pixels channels"]:
    """Return x batch-normalised by a layer `name` of this `kind`, made in the calling module.

    Without a name it is BatchNorm_0, BatchNorm_1, ... in the order of the calls, a frozen one FrozenNorm_0, ....
    `affine` gives a frozen layer its scale and bias.  Raises `UserError` for an unknown kind.
    """
    if kind == "frozen":
        return FrozenNorm(affine, name=name)(x)
    if kind not in ("statistics", "affine"):
        raise UserError(f"unknown batch_norm {kind!r}; known are frozen, statistics, affine")
    affine = kind == "affine"
    layer = nn.BatchNorm(
        use_running_average=not train,
        momentum=MOMENTUM,
        epsilon=EPSILON,
        use_bias=affine,
        use_scale=affine,
        name=name,
    )
    return layer(x, mask=None if valid is None else jnp.expand_dims(valid, tuple(range(1, x.ndim))))
