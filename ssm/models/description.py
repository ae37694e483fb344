"""The one description of the paper's networks, which the Flax modules and `ssm.models.graph` both read; needs no JAX.

Source: the paper's table of architectures, and for the ResNets the authors' program (docs/ledger.md, rows 14 to 16).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ssm.errors import UserError

PAIRS: Mapping[str, tuple[int, ...]] = {
    "conv2": (64,),
    "conv4": (64, 128),
    "conv6": (64, 128, 256),
    "conv8": (64, 128, 256, 512),
}
"""Channels of each pair of 3x3 convolutions, by model."""

HIDDEN: Mapping[str, tuple[int, ...]] = {"fcn": (300, 100), **dict.fromkeys(PAIRS, (256, 256))}
"""Sizes of the dense layers before the last one, by model."""

BLOCKS: Mapping[str, int] = {"resnet20": 3, "resnet56": 9, "resnet110": 18}
"""Residual blocks per stage, by model."""

RESNETS = tuple(BLOCKS)
"""The models with batch normalisation; `projections`, `batch_norm` and `stem_affine` concern these alone."""

FILTERS = (16, 32, 64)
"""Channels of the three stages of a ResNet."""

EPSILON = 1e-3
"""Added to the variance in batch normalisation: Keras' default, which the authors' program keeps."""


class Dense(NamedTuple):
    """A dense layer without a bias: its name and its number of outputs."""

    name: str
    size: int


class Convolution(NamedTuple):
    """A convolution without a bias, padded so that stride 1 keeps the size of its input."""

    name: str
    size: int
    window: int = 3
    stride: int = 1

    @property
    def norm(self) -> str:
        """The name of the batch normalisation that follows it in a ResNet: BatchNorm_N after Conv_N."""
        return self.name.replace("Conv_", "BatchNorm_")


class Block(NamedTuple):
    """A residual block: two convolutions, and one on its shortcut (None where that is the identity)."""

    name: str
    first: Convolution
    second: Convolution
    shortcut: Convolution | None


def scaled(size: int, width: float) -> int:
    """Return a layer's size times `width`, rounded, at least 1."""
    return max(1, round(size * width))


def dense_layers(hidden: Sequence[int], classes: int, width: float) -> list[Dense]:
    """Return the dense layers Dense_0, Dense_1, ...: one of each size in `hidden`, scaled, and the output layer."""
    sizes = [*(scaled(size, width) for size in hidden), classes]
    return [Dense(f"Dense_{number}", size) for number, size in enumerate(sizes)]


def convolution_pairs(pairs: Sequence[int], width: float) -> Iterator[tuple[Convolution, Convolution]]:
    """Yield the pairs of convolutions of Conv2 to Conv8, Conv_0 and Conv_1 first; a 2x2 max-pool follows each pair."""
    for number, size in enumerate(pairs):
        first, second = (Convolution(f"Conv_{2 * number + index}", scaled(size, width)) for index in range(2))
        yield first, second


def stem(width: float) -> Convolution:
    """Return the first convolution of a ResNet."""
    return Convolution("Conv_0", scaled(FILTERS[0], width))


def residual_blocks(blocks: int, projections: int, width: float) -> Iterator[Block]:
    """Yield the blocks of a ResNet's three stages, `blocks` in each.

    `projections` of each stage, evenly spaced from the first on, are projection blocks: their first convolution is 1x1,
    their shortcut a 1x1 convolution, and in stages 2 and 3 both have stride 2.  Raises as `check_projections` does.
    """
    check_projections(projections, blocks)
    projected = {index * blocks // projections for index in range(projections)}
    for stage, filters in enumerate(FILTERS):
        size = scaled(filters, width)
        for index in range(blocks):
            projects = index in projected
            stride = 2 if projects and stage > 0 else 1
            yield Block(
                f"Block_{stage * blocks + index:02d}",  # two digits, so that layers sorted by name are in order
                Convolution("Conv_0", size, window=1 if projects else 3, stride=stride),
                Convolution("Conv_1", size),
                Convolution("Conv_2", size, window=1, stride=stride) if projects else None,
            )


def check_projections(projections: int, blocks: int) -> None:
    """Raise UserError unless a stage of `blocks` residual blocks can have `projections` projection blocks."""
    if type(projections) is not int or not 1 <= projections <= blocks:
        raise UserError(f"projections must be in 1 to {blocks}, the residual blocks of a stage; got {projections!r}")
