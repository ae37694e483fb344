"""What the paper's networks have in common."""

from collections.abc import Callable

from flax import linen as nn
from jax import Array


class Net(nn.Module):
    """A network's common fields, and its dense layers, which have no biases.

    `classes`: outputs.  `width`: multiplies the sizes of all other layers.  `kernel_init`: of all kernels.
    `dot_general`, `conv_general_dilated`: products and convolutions as `flax.linen` takes them, None for JAX's own.
    """

    classes: int = 10
    width: float = 1.0
    kernel_init: Callable[..., Array] = nn.initializers.he_normal()
    dot_general: Callable[..., Array] | None = None
    conv_general_dilated: Callable[..., Array] | None = None

    def scaled(self, size: int) -> int:
        """Return a layer's size times `width`, rounded, at least 1."""
        return max(1, round(size * self.width))

    def dense(self, size: int) -> nn.Dense:
        """Return a dense layer of this size."""
        return nn.Dense(size, use_bias=False, kernel_init=self.kernel_init, dot_general=self.dot_general)
