"""Wide residual networks for CIFAR, with RigL's 22-2 as the default."""

from collections.abc import Callable

from flax import linen as nn
from jax import Array
from jaxtyping import Bool, Float

from ssm.errors import UserError
from ssm.models.description import FILTERS, Convolution, Dense, scaled
from ssm.models.networks import Net, NormKind, no_bytes
from ssm.ops.activations import Activation, activation_named


class PreactivationBlock(nn.Module):
    """A residual block whose convolutions come after batch normalisation and activation, with dropout between them.

    Input [batch, height, width, channels]; output [batch, height / stride, width / stride, size].  Layers in order:
    BatchNorm_0, Conv_0 (3x3, strided), BatchNorm_1, Conv_1 (3x3), and where the shape changes Conv_2 (1x1, strided),
    the shortcut's, which takes the activated input; elsewhere the shortcut is the input itself.
    `conv` makes a layer of its description; `norm` makes and applies a batch normalisation.
    """

    size: int
    stride: int
    dropout: float
    conv: Callable[[Convolution], nn.Conv]
    norm: Callable[[Array], Array]
    activation: Callable[[Array], Array]

    @nn.compact
    def __call__(
        self, x: Float[Array, "batch height width channels"], *, train: bool
    ) -> Float[Array, "batch rows columns size"]:
        y = self.activation(self.norm(x))
        if self.stride > 1 or x.shape[-1] != self.size:
            x = self.conv(Convolution("Conv_2", self.size, window=1, stride=self.stride))(y)
        y = self.conv(Convolution("Conv_0", self.size, stride=self.stride))(y)
        y = self.activation(self.norm(y))
        y = nn.Dropout(self.dropout, deterministic=not train)(y)
        return x + self.conv(Convolution("Conv_1", self.size))(y)


class WideResNet(Net):
    """A wide residual network: a 3x3 stem, three stages of pre-activation blocks, the mean over all positions, logits.

    Input [batch, height, width, channels]; output logits [batch, classes].  Layers in order: Conv_0 (the stem of 16),
    Block_00, Block_01, ... (see `PreactivationBlock`; the first of the second and third stage has stride 2),
    BatchNorm_0 and the activation, Dense_0, which alone has a bias.

    - `depth`: 4 and six layers for each block of a stage; 22 has three blocks;
    - `widening`: multiplies the 16, 32 and 64 filters of the stages, but not the stem's; 2 and 10 make 22-2 and 22-10;
    - `width`: multiplies all filters, the stem's, too;
    - `dropout`: share of a block's hidden features dropped in training, by the random stream `dropout`; 0.3 in RigL's.

    `train` says whether there is dropout, and whether batch statistics are used and their averages updated; `valid`,
    which samples of a padded batch they count (None: all).  Raises `UserError` for another depth.
    Source: Zagoruyko and Komodakis, "Wide Residual Networks" (2016), and RigL's program.
    """

    activation: Activation = "relu"
    batch_norm: NormKind = "statistics"
    depth: int = 22
    widening: float = 2.0
    dropout: float = 0.0

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "batch height width channels"],
        *,
        train: bool = False,
        valid: Bool[Array, " batch"] | None = None,
    ) -> Float[Array, "batch classes"]:
        if type(self.depth) is not int or self.depth < 10 or self.depth % 6 != 4:
            raise UserError(f"the depth of a wide residual network must be 10, 16, 22, ...; got {self.depth!r}")
        blocks = (self.depth - 4) // 6
        activate, conv = activation_named(self.activation), self.conv_maker()
        norm = self.normaliser(train=train, valid=valid)
        x = conv(Convolution("Conv_0", scaled(FILTERS[0], self.width)))(no_bytes(x))
        for stage, filters in enumerate(FILTERS):
            size = scaled(filters, self.widening * self.width)
            for index in range(blocks):
                stride = 2 if stage > 0 and index == 0 else 1
                name = f"Block_{stage * blocks + index:02d}"
                x = PreactivationBlock(size, stride, self.dropout, conv, norm, activate, name=name)(x, train=train)
        x = activate(norm(x)).mean(axis=(1, 2))
        return self.dense(Dense("Dense_0", self.classes), use_bias=True)(x)
