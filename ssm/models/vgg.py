"""Plain stacks of 3x3 convolutions on CIFAR-10 from the related work: VGG-Small in its three forms, and VGG-19."""

from itertools import count

from flax import linen as nn
from jax import Array
from jaxtyping import Bool, Float

from ssm.models.description import Convolution, scaled
from ssm.models.networks import Net, NormKind, no_bytes
from ssm.ops.activations import Activation, activation_named
from ssm.ops.pooling import max_pool

Stages = tuple[tuple[int, ...], ...]

VGG_SMALL: Stages = ((128, 128), (256, 256), (512, 512))
"""Channels of the convolutions of VGG-Small, by stage."""

VGG19: Stages = ((64, 64), (128, 128), (256,) * 4, (512,) * 4, (512,) * 4)
"""Channels of the convolutions of VGG-19, by stage."""


class VGG(Net):
    """A VGG net: stages of 3x3 convolutions, a 2x2 max-pool after each stage, then dense layers.

    Input [batch, height, width, channels]; output logits [batch, classes].  No biases.  Layers in order: Conv_0,
    Conv_1, ..., then Dense_0, ...; BatchNorm_0, BatchNorm_1, ... follow each of them, but the output layer.

    - `stages`, `hidden`: sizes of the convolutions and of the dense layers before the last, all multiplied by `width`;
    - `mean`: whether the mean over all positions takes the place of the last max-pool and of flattening;
    - `norm_after_pool`: whether batch normalisation comes after the pool instead of before;
    - `norm_output`: whether batch normalisation follows the output layer, too.

    `train` says whether batch statistics are used and their averages updated; `valid`, which samples of a padded
    batch they count (None: all).
    Source: the programs of the related work; VGG-Small without dense layers but the last is MPT's, with one of 1024
    TWN's and LR-Net's, with two and both options of batch normalisation BinaryConnect's and BNN's; VGG-19 with `mean`
    is FORCE's and GraNet's.
    """

    activation: Activation = "relu"
    batch_norm: NormKind = "statistics"
    stages: Stages = VGG_SMALL
    hidden: tuple[int, ...] = ()
    mean: bool = False
    norm_after_pool: bool = False
    norm_output: bool = False

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
        x, numbers = no_bytes(x), count()
        for stage, sizes in enumerate(self.stages):
            for place, size in enumerate(sizes):
                x = conv(Convolution(f"Conv_{next(numbers)}", scaled(size, self.width)))(x)
                pools = place == len(sizes) - 1 and not (self.mean and stage == len(self.stages) - 1)
                if not pools:
                    x = norm(x)
                elif self.norm_after_pool:
                    x = norm(max_pool(x))
                else:
                    x = max_pool(norm(x))
                x = activate(x)
        x = x.mean(axis=(1, 2)) if self.mean else x.reshape((x.shape[0], -1))
        x = self.logits(x, self.hidden, norm)
        return norm(x) if self.norm_output else x
