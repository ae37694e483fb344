"""The paper's residual networks, with its three kinds of batch normalisation."""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import jax.numpy as jnp
from flax import linen as nn
from jax import Array
from jaxtyping import Bool, Float

from ssm.errors import UserError
from ssm.models.graph import EPSILON, FILTERS
from ssm.models.net import Net
from ssm.ops.pooling import elu, smooth_pool

MOMENTUM = 0.99  # as EPSILON Keras' default, which the authors' program keeps

BatchNorm = Literal["frozen", "statistics", "affine"]


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


class Block(nn.Module):
    """A residual block: two convolutions, and a sum with its input, plain or projected.

    Input [batch, height, width, channels]; output [batch, height / stride, width / stride, size].  Layers in order:
    Conv_0 (3x3, or 1x1 in a projection block, strided), Conv_1 (3x3), and in a projection block Conv_2 (1x1,
    strided), the shortcut's.  Each has its batch normalisation, BatchNorm_0 to BatchNorm_2.  ELU after the first
    convolution and after the sum; in a projection block also after the second convolution, before the sum.
    `conv` makes a convolution of a size, a window and strides; `norm` is a function of x and a layer's name.
    Source: the authors' program, of which tests/golden holds the values; docs/ledger.md, row 15.
    """

    size: int
    stride: int
    project: bool
    conv: Callable[..., nn.Conv]
    norm: Callable[..., Array]

    @nn.compact
    def __call__(self, x: Float[Array, "batch height width channels"]) -> Float[Array, "batch rows columns size"]:
        window = (1, 1) if self.project else (3, 3)
        y = self.conv(self.size, window, self.stride, name="Conv_0")(x)
        y = elu(self.norm(y, name="BatchNorm_0"))
        y = self.norm(self.conv(self.size, (3, 3), name="Conv_1")(y), name="BatchNorm_1")
        if self.project:
            y = elu(y)
            x = self.norm(self.conv(self.size, (1, 1), self.stride, name="Conv_2")(x), name="BatchNorm_2")
        return elu(x + y)


class ResNet(Net):
    """The paper's ResNet: a stem, three stages of residual blocks, the mean over all positions, a dense layer.

    Input [batch, height, width, channels]; output logits [batch, classes].  No biases.  Layers in order: Conv_0 (the
    stem, 3x3; then batch normalisation BatchNorm_0, ELU and a 3x3 max-pool of stride 1), Block_00, Block_01, ...
    (`blocks` of each stage; see `Block`), Dense_0.

    - `blocks`: blocks of a stage, 3, 9 or 18 for ResNet20, 56 or 110;
    - `projections`: how many of them, evenly spaced from the first on, are projection blocks, strided in stages 2
      and 3; the authors' masked ResNet110 has 2 where the dense one has 1;
    - `width`: multiplies the 16, 32 and 64 filters of the stages;
    - `batch_norm`: "frozen" divides by sqrt(1.001) and has no parameters; "statistics" normalises by the batch's
      mean and variance in training and by their running averages, collection `batch_stats`, otherwise; "affine"
      also has a `scale` and `bias`;
    - `stem_affine`: under "frozen", whether the stem's layer has a `scale` and `bias` nevertheless.

    `train` says whether batch statistics are used and their averages updated; `valid`, which samples of a padded
    batch they count (None: all).  Raises `UserError` for `projections` outside 1 to `blocks`, or another `batch_norm`.
    Source: the authors' program; docs/ledger.md, rows 14 to 16.
    """

    blocks: int = 3
    projections: int = 1
    batch_norm: BatchNorm = "frozen"
    stem_affine: bool = False

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "batch height width channels"],
        *,
        train: bool = False,
        valid: Bool[Array, " batch"] | None = None,
    ) -> Float[Array, "batch classes"]:
        if not 1 <= self.projections <= self.blocks:
            raise UserError(f"projections must be in 1 to {self.blocks}, the blocks of a stage; got {self.projections}")
        conv = partial(
            nn.Conv, use_bias=False, kernel_init=self.kernel_init, conv_general_dilated=self.conv_general_dilated
        )
        norm = partial(normalise, kind=self.batch_norm, train=train, valid=valid)
        sizes = [self.scaled(size) for size in FILTERS]
        projected = {index * self.blocks // self.projections for index in range(self.projections)}

        x = conv(sizes[0], (3, 3), name="Conv_0")(x)
        x = elu(norm(x, name="BatchNorm_0", affine=self.stem_affine))
        x = smooth_pool(x)
        for stage, size in enumerate(sizes):
            for index in range(self.blocks):
                project = index in projected
                stride = 2 if project and stage > 0 else 1
                # Two digits, so that layers sorted by name are in order.
                name = f"Block_{stage * self.blocks + index:02d}"
                x = Block(size, stride, project, conv, norm, name=name)(x)
        x = x.mean(axis=(1, 2))
        return self.dense(self.classes)(x)


def normalise(
    x: Float[Array, "batch height width channels"],
    *,
    kind: BatchNorm,
    name: str,
    train: bool,
    valid: Bool[Array, " batch"] | None,
    affine: bool = False,
) -> Float[Array, "batch height width channels"]:
    """Return x batch-normalised by a layer `name` of this `kind`, made in the module that calls.

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
    return layer(x, mask=None if valid is None else valid[:, None, None, None])
