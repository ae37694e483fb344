"""A trained net without its training state, and the forms in which it can be used."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32, Int8
from scipy.sparse import csr_array

from ssm.errors import UserError
from ssm.export.compaction import Compact, compact
from ssm.export.contents import Contents
from ssm.export.images import raw_images
from ssm.export.runtime import Norm, Runtime
from ssm.export.serialization import to_bytes
from ssm.files import save
from ssm.models.description import EPSILON
from ssm.models.graph import Architecture, graph, norms

if TYPE_CHECKING:
    from flax import linen as nn

# `ssm.export.flax_module` needs JAX, and is imported by the methods that need it, too.


@dataclass(frozen=True, kw_only=True, eq=False)
class Artifact(Contents):
    """A trained net, read from a file by `ssm.load` or made from a run or a masked module by `ssm.export.conversion`.

    Has the fields of `Contents`, and given: the module that the user gave for `architecture` None.
    """

    given: nn.Module | None = None

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the file, whole or not at all, and return its size in bytes.

        Raises:
            UserError: if it cannot be written.
        """
        data = to_bytes(self)
        save(path, data)
        return len(data)

    def to_numpy(self) -> dict[str, Int8[np.ndarray, "..."]]:
        """Return the ternary layers, in {-1, 0, 1}: kernels over their constants, or masks where there is none."""
        return {name: layer.ternary for name, layer in self.layers.items()}

    def to_dense(self) -> dict[str, Float32[np.ndarray, "..."]]:
        """Return the effective weights by layer, float32; needs JAX where weights are redrawn from the seed.

        Raises:
            UserError: if this machine draws other frozen weights.
        """
        return dict(self._kernels)

    def to_scipy(self) -> dict[str, csr_array]:
        """Return the effective weights by layer as sparse rows; more than two dimensions become [-1, out]."""
        rows = {name: math.prod(kernel.shape[:-1]) for name, kernel in self._kernels.items()}
        return {name: csr_array(kernel.reshape(rows[name], kernel.shape[-1])) for name, kernel in self._kernels.items()}

    @property
    def weights(self) -> int:
        """The number of weights, and of mask elements."""
        return sum(layer.ternary.size for layer in self.layers.values())

    @property
    def remaining(self) -> int:
        """The number of weights that are not 0."""
        return sum(int(np.count_nonzero(layer.ternary)) for layer in self.layers.values())

    @property
    def own_values(self) -> int:
        """The number of weights that the file holds as float32, as no constant is theirs."""
        return sum(layer.own.size for layer in self.layers.values() if layer.own is not None)

    @property
    def module(self) -> nn.Module:
        """The net as a plain Flax module."""
        from ssm.export.flax_module import module

        return module(self.architecture, self.precision, self.given)

    @cached_property
    def variables(self) -> dict[str, Any]:
        """The module's variables, JAX arrays: with them it computes the trained net's logits, bit for bit.

            net.module.apply(net.variables, net.standardize(images))

        May be used first inside `jax.jit` and other transformations, too.
        """
        from ssm.export.flax_module import variables

        return variables(self._kernels, self.values)

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The compiled function from a batch of uint8 images to logits."""
        from ssm.export.flax_module import compiled

        return compiled(self.module, self.variables)

    def standardize(self, images: Any) -> Any:
        """Return raw images, uint8 [n, height, width, channels], as `module` takes them: float32, each standardised.

        A JAX array; works inside `jax.jit`.

        Raises:
            UserError: for images of another dtype or shape.
        """
        from ssm.data.standardize import standardized

        return standardized(raw_images(images, self._inputs))

    def logits(self, images: Any) -> Any:
        """Return the logits [n, classes] of raw images, uint8 [n, height, width, channels], as training computes them.

        A NumPy array; inside `jax.jit` a traced one.

        Raises:
            UserError: for images of another dtype or shape, such as floats: they are for `module` and `runtime()`.
        """
        from ssm.export.flax_module import logits

        return logits(self.compiled, raw_images(images, self._inputs))

    def runtime(self) -> Runtime:
        """Return the net for inference without JAX, without what cannot influence its output."""
        return self.compact().runtime()

    def full_runtime(self) -> Runtime:
        """Return the net for inference without JAX, with all its units: for inspection."""
        net = self.known()
        return Runtime(graph(net), self._kernels, self.norms(), inputs=net.inputs, class_names=self.class_names)

    def compact(self) -> Compact:
        """Return the net without the inputs, units and channels that cannot influence its output."""
        net = self.known()
        return compact(graph(net), self._kernels, self.norms(), inputs=net.inputs, class_names=self.class_names)

    def norms(self) -> dict[str, Norm]:
        """Return the batch normalisations as factors and offsets, by name."""

        def of(name: str) -> Norm:
            def value(collection: str, what: str, default: float) -> Any:
                return self.values.get(f"{collection}/{name}/{what}", np.float32(default))

            factor = value("params", "scale", 1) / np.sqrt(value("batch_stats", "var", 1) + np.float32(EPSILON))
            return Norm(factor, value("params", "bias", 0) - value("batch_stats", "mean", 0) * factor)

        return {name: of(name) for name in norms(graph(self.known()))}

    def known(self) -> Architecture:
        """Return the architecture; UserError where the module is the user's own."""
        if self.architecture is None:
            raise UserError("this net's module is the user's own: only Flax knows its operations")
        return self.architecture

    @property
    def _inputs(self) -> tuple[int, ...] | None:
        return None if self.architecture is None else self.architecture.inputs

    @cached_property
    def _kernels(self) -> dict[str, np.ndarray]:
        frozen: dict[str, np.ndarray] = {}
        if self.recipe is not None:
            from ssm.export.flax_module import frozen_kernels

            frozen = frozen_kernels(self.recipe, self.known())
        return {name: layer.times(frozen.get(name)) for name, layer in self.layers.items()}
