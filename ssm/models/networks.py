"""The paper's networks as Flax modules, their layers as in `ssm.models.description`, and by name."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, TypeAlias, get_args

import jax.numpy as jnp
from flax import linen as nn
from jax import Array
from jaxtyping import Bool, Float

from ssm.errors import UserError
from ssm.models import description
from ssm.models.description import BLOCKS, HIDDEN, PAIRS
from ssm.models.resnet import BatchNorm, ResidualBlock, normalise
from ssm.ops.activations import Activation, activation_named
from ssm.ops.epilogue import ELU, POOL_ELU, Epilogue, conv_general_dilated
from ssm.ops.pooling import max_pool, smooth_pool

Norm: TypeAlias = Callable[[Array], Array]
NormKind: TypeAlias = Literal["none", "statistics", "affine"]
"""The kinds of batch normalisation of the nets other than `ResNet`."""


class Net(nn.Module):
    """A network's common fields, and its dense layers, which have no biases.

    `classes`: outputs.  `width`: multiplies the sizes of all other layers.  `kernel_init`: of all kernels.
    `sizes`: of hidden dense layers by name, where they are not what `width` makes of them.
    `dot_general`, `conv_general_dilated`: products and convolutions as `flax.linen` takes them, None for JAX's own.
    `activation`: "elu", "relu" or "sign", as in `ssm.ops.activations`.
    `batch_norm`: after every dense and convolution layer, before its activation: "none"; "statistics", by the batch's
    mean and variance in training and by their running averages, collection `batch_stats`, otherwise; or "affine",
    which also has a `scale` and `bias`.  Its layers are BatchNorm_0, BatchNorm_1, ... in order.
    """

    classes: int = 10
    width: float = 1.0
    sizes: tuple[tuple[str, int], ...] = ()
    kernel_init: Callable[..., Array] = nn.initializers.he_normal()
    dot_general: Callable[..., Array] | None = None
    conv_general_dilated: Callable[..., Array] | None = None
    activation: Activation = "elu"
    batch_norm: NormKind = "none"

    def logits(
        self, x: Float[Array, "batch features"], hidden: Sequence[int] = (), norm: Norm | None = None
    ) -> Float[Array, "batch classes"]:
        """Return the output of the dense layers: one of each size in `hidden`, activated, and the output layer.

        `norm` follows each hidden layer, before its activation; the output layer's is left to the caller.
        """
        activate = activation_named(self.activation)
        *inner, last = description.dense_layers(hidden, self.classes, self.width)
        for layer in inner:
            x = self.dense(layer)(x)
            x = activate(norm(x) if norm else x)
        return self.dense(last)(x)

    def dense(self, layer: description.Dense, *, use_bias: bool = False) -> nn.Dense:
        """Return the dense layer of a description."""
        size = dict(self.sizes).get(layer.name, layer.size)
        return nn.Dense(
            size, use_bias=use_bias, kernel_init=self.kernel_init, dot_general=self.dot_general, name=layer.name
        )

    def conv_maker(self) -> Callable[[description.Convolution], nn.Conv]:
        """Return a function that makes a convolution of its description, in whichever module calls it."""
        return partial(conv_layer, kernel_init=self.kernel_init, conv_general_dilated=self.conv_general_dilated)

    def normaliser(self, *, train: bool, valid: Bool[Array, " batch"] | None) -> Norm:
        """Return the net's batch normalisation as a function of a layer's output, the identity for "none".

        Each call makes one layer, in whichever module calls it.  Raises UserError for an unknown `batch_norm`.
        """
        if self.batch_norm not in get_args(NormKind):
            raise UserError(f"unknown batch_norm {self.batch_norm!r}; known are {', '.join(get_args(NormKind))}")
        if self.batch_norm == "none":
            return lambda x: x
        return partial(normalise, kind=self.batch_norm, train=train, valid=valid)


class FCN(Net):
    """The paper's fully connected net: dense layers without biases, the activation between them.

    Input [batch, ...], flattened; output logits [batch, classes].  784-300-100-10 on MNIST has 266,200 weights.
    Layers in order: Dense_0, Dense_1, Dense_2.  `width` multiplies the `hidden` sizes; batch normalisation, if any,
    follows the output layer, too.  `train` and `valid` concern it alone, and `conv_general_dilated` has no effect:
    all nets take them.
    """

    hidden: tuple[int, ...] = HIDDEN["fcn"]

    @nn.compact
    def __call__(
        self, x: Float[Array, "batch ..."], *, train: bool = False, valid: Bool[Array, " batch"] | None = None
    ) -> Float[Array, "batch classes"]:
        norm = self.normaliser(train=train, valid=valid)
        return norm(self.logits(no_bytes(x).reshape((x.shape[0], -1)), self.hidden, norm))


class ConvNet(Net):
    """The paper's Conv2 to Conv8: pairs of 3x3 convolutions, each pair and a 2x2 max-pool, then dense layers.

    Input [batch, height, width, channels]; output logits [batch, classes].  No biases; the activation after every
    layer but the last.  Layers in order: Conv_0, Conv_1 (the first pair), ..., then Dense_0, Dense_1, Dense_2.
    `width` multiplies the channels of the `pairs` and the `hidden` sizes; batch normalisation, if any, comes before
    the max-pool and follows the output layer, too.  `train` and `valid` concern it alone: all nets take them.
    `conv_general_dilated` takes what JAX's does, and an `epilogue`, which it applies to its output: ELU and the pool,
    where there is no batch normalisation.
    Source: the paper's table of architectures.
    """

    pairs: tuple[int, ...] = PAIRS["conv4"]
    hidden: tuple[int, ...] = HIDDEN["conv4"]

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "batch height width channels"],
        *,
        train: bool = False,
        valid: Bool[Array, " batch"] | None = None,
    ) -> Float[Array, "batch classes"]:
        norm = self.normaliser(train=train, valid=valid)
        activate, conv = activation_named(self.activation), self.conv_maker()
        fused = self.batch_norm == "none" and self.activation == "elu"
        x = no_bytes(x)
        for first, second in description.convolution_pairs(self.pairs, self.width):
            if fused:
                x = self._fused(first, ELU)(x)
                x = self._fused(second, POOL_ELU)(x)
            else:
                x = activate(norm(conv(first)(x)))
                x = activate(max_pool(norm(conv(second)(x))))
        return norm(self.logits(x.reshape((x.shape[0], -1)), self.hidden, norm))

    def _fused(self, layer: description.Convolution, epilogue: Epilogue) -> nn.Conv:
        convolve = partial(self.conv_general_dilated or conv_general_dilated, epilogue=epilogue)
        return conv_layer(layer, kernel_init=self.kernel_init, conv_general_dilated=convolve)


class ResNet(Net):
    """The paper's ResNet: a stem, three stages of residual blocks, the mean over all positions, a dense layer.

    Input [batch, height, width, channels]; output logits [batch, classes].  No biases.  Layers in order: Conv_0 (the
    stem, 3x3; then batch normalisation BatchNorm_0, activation and a 3x3 max-pool of stride 1), Block_00, Block_01, ...
    (`blocks` of each stage; see `ResidualBlock`), Dense_0.

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

    blocks: int = BLOCKS["resnet20"]
    projections: int = 1
    batch_norm: BatchNorm = "frozen"  # another set of kinds than the other nets'
    stem_affine: bool = False

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "batch height width channels"],
        *,
        train: bool = False,
        valid: Bool[Array, " batch"] | None = None,
    ) -> Float[Array, "batch classes"]:
        activate, conv = activation_named(self.activation), self.conv_maker()
        norm = partial(normalise, kind=self.batch_norm, train=train, valid=valid)
        stem = description.stem(self.width)
        x = activate(norm(conv(stem)(no_bytes(x)), name=stem.norm, affine=self.stem_affine))
        x = smooth_pool(x)
        for block in description.residual_blocks(self.blocks, self.projections, self.width):
            x = ResidualBlock(block, conv, norm, activate, name=block.name)(x)
        return self.logits(x.mean(axis=(1, 2)))


MODELS: Mapping[str, Callable[..., nn.Module]] = {
    "fcn": FCN,
    **{name: partial(ConvNet, pairs=pairs, hidden=HIDDEN[name]) for name, pairs in PAIRS.items()},
    **{name: partial(ResNet, blocks=blocks) for name, blocks in BLOCKS.items()},
}
"""The paper's networks by name."""


def conv_layer(layer: description.Convolution, **options) -> nn.Conv:
    """Return the convolution of a description, without a bias; `options` are Flax's."""
    return nn.Conv(layer.size, (layer.window, layer.window), layer.stride, use_bias=False, name=layer.name, **options)


def no_bytes(x: Array) -> Array:
    """Return a net's inputs; raises UserError for raw images, which training standardises before any net has them."""
    if x.dtype == jnp.uint8 and x.ndim in (3, 4):
        raise UserError(
            f"images are uint8 {list(x.shape)}, but the net takes standardised ones: ssm.data.standardized(images)"
        )
    return x
