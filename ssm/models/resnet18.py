"""ResNet-18 for CIFAR, of edge-popup, IteRand and MPT; another net than the paper's own ResNets."""

from collections.abc import Callable

from flax import linen as nn
from jax import Array
from jaxtyping import Bool, Float

from ssm.models.description import Convolution, scaled
from ssm.models.networks import Net, NormKind, no_bytes
from ssm.ops.activations import Activation, activation_named

FILTERS = (64, 128, 256, 512)
"""Channels of the four stages; the stem has the first's."""


class BasicBlock(nn.Module):
    """A residual block: two 3x3 convolutions, and a sum with its input, convolved where its shape changes.

    Input [batch, height, width, channels]; output [batch, height / stride, width / stride, size].  Layers in order:
    Conv_0 (strided), Conv_1, and where the shape changes Conv_2 (1x1, strided), the shortcut's.  Each has its batch
    normalisation, BatchNorm_0 to BatchNorm_2.  The activation follows the first convolution and the sum.
    `conv` makes a layer of its description; `norm` makes and applies a batch normalisation.
    """

    size: int
    stride: int
    conv: Callable[[Convolution], nn.Conv]
    norm: Callable[[Array], Array]
    activation: Callable[[Array], Array]

    @nn.compact
    def __call__(self, x: Float[Array, "batch height width channels"]) -> Float[Array, "batch rows columns size"]:
        y = self.conv(Convolution("Conv_0", self.size, stride=self.stride))(x)
        y = self.activation(self.norm(y))
        y = self.norm(self.conv(Convolution("Conv_1", self.size))(y))
        if self.stride > 1 or x.shape[-1] != self.size:
            x = self.norm(self.conv(Convolution("Conv_2", self.size, window=1, stride=self.stride))(x))
        return self.activation(x + y)


class ResNet18(Net):
    """ResNet-18 for small images: a 3x3 stem, four stages of basic blocks, the mean over all positions, a dense layer.

    Input [batch, height, width, channels]; output logits [batch, classes].  No biases and no max-pool.  Layers in
    order: Conv_0 and BatchNorm_0 (the stem), Block_00, Block_01, ... (`blocks` of each stage; see `BasicBlock`; the
    first of the second, third and fourth stage has stride 2), Dense_0.  `width` multiplies the 64 to 512 filters;
    `blocks` of (3, 4, 6, 3) make ResNet-34.  `train` says whether batch statistics are used and their averages
    updated; `valid`, which samples of a padded batch they count (None: all).
    Source: He et al., "Deep Residual Learning for Image Recognition" (2016); the form for CIFAR is that of MPT's
    program, whose output layer is a 1x1 convolution without a bias.
    """

    activation: Activation = "relu"
    batch_norm: NormKind = "statistics"
    blocks: tuple[int, ...] = (2, 2, 2, 2)

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "batch height width channels"],
        *,
        train: bool = False,
        valid: Bool[Array, " batch"] | None = None,
    ) -> Float[Array, "batch classes"]:
        activate, conv = activation_named(self.activation), self.conv_maker()
        norm = self.normaliser(train=train, valid=valid)
        x = conv(Convolution("Conv_0", scaled(FILTERS[0], self.width)))(no_bytes(x))
        x = activate(norm(x))
        strides = [
            (filters, 2 if stage > 0 and index == 0 else 1)
            for stage, (filters, blocks) in enumerate(zip(FILTERS, self.blocks, strict=True))
            for index in range(blocks)
        ]
        for number, (filters, stride) in enumerate(strides):
            block = BasicBlock(scaled(filters, self.width), stride, conv, norm, activate, name=f"Block_{number:02d}")
            x = block(x)
        return self.logits(x.mean(axis=(1, 2)))
