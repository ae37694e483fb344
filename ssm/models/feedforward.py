"""The paper's fully connected net and its convolutional nets Conv2 to Conv8."""

from functools import partial

from flax import linen as nn
from jax import Array
from jaxtyping import Bool, Float

from ssm.models.net import Net
from ssm.ops.pooling import ELU, POOL_ELU, Then, conv_general_dilated, elu


class FCN(Net):
    """The paper's fully connected net: dense layers without biases, ELU between them.

    Input [batch, ...], flattened; output logits [batch, classes].  784-300-100-10 on MNIST has 266,200 weights.
    Layers in order: Dense_0, Dense_1, Dense_2.  `width` multiplies the `hidden` sizes; `train`, `valid` and
    `conv_general_dilated` are there for other nets' sake.
    """

    hidden: tuple[int, ...] = (300, 100)

    @nn.compact
    def __call__(
        self, x: Float[Array, "batch ..."], *, train: bool = False, valid: Bool[Array, " batch"] | None = None
    ) -> Float[Array, "batch classes"]:
        x = x.reshape((x.shape[0], -1))
        for size in self.hidden:
            x = elu(self.dense(self.scaled(size))(x))
        return self.dense(self.classes)(x)


class ConvNet(Net):
    """The paper's Conv2 to Conv8: pairs of 3x3 convolutions, each pair and a 2x2 max-pool, then dense layers.

    Input [batch, height, width, channels]; output logits [batch, classes].  No biases; ELU after every layer but the
    last.  Layers in order: Conv_0, Conv_1 (the first pair), ..., then Dense_0, Dense_1, Dense_2.  `width` multiplies
    the channels of the `pairs` and the `hidden` sizes; `train` and `valid` are there for other nets' sake.
    `conv_general_dilated` takes what JAX's does, and what follows the convolution as `then`.
    Source: the paper's table of architectures.
    """

    pairs: tuple[int, ...] = (64, 128)
    hidden: tuple[int, ...] = (256, 256)

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "batch height width channels"],
        *,
        train: bool = False,
        valid: Bool[Array, " batch"] | None = None,
    ) -> Float[Array, "batch classes"]:
        for size in self.pairs:
            x = self._conv(self.scaled(size), ELU)(x)
            x = self._conv(self.scaled(size), POOL_ELU)(x)
        x = x.reshape((x.shape[0], -1))
        for size in self.hidden:
            x = elu(self.dense(self.scaled(size))(x))
        return self.dense(self.classes)(x)

    def _conv(self, size: int, then: Then) -> nn.Conv:
        return nn.Conv(
            size,
            (3, 3),
            use_bias=False,
            kernel_init=self.kernel_init,
            conv_general_dilated=partial(self.conv_general_dilated or conv_general_dilated, then=then),
        )
