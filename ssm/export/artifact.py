"""A trained net without what training needed: ternary layers, one constant for each, and what else inference needs."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int8

from ssm.errors import UserError
from ssm.files import save
from ssm.models.description import EPSILON
from ssm.models.graph import Architecture, graph, norms

if TYPE_CHECKING:
    from flax import linen as nn
    from scipy.sparse import csr_array

    from ssm.export.compaction import Compact
    from ssm.export.runtime import Norm, Runtime


class Layer(NamedTuple):
    """A layer's kernel: `ternary` times `constant`, int8 [in, out] or [height, width, in, out] and a float32.

    Where the frozen weights have no one magnitude, `constant` is None and `ternary` the mask on them, which come again
    from the seed (`Artifact.recipe`).
    """

    ternary: Int8[np.ndarray, "..."]
    constant: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Artifact:
    """All that inference needs of a trained net, as a file holds it.

    layers: by name, such as `Dense_0`, in the net's order of names.
    values: what else it learned or kept, float32, by `COLLECTION/LAYER/NAME`: scales, offsets, batch statistics.
    architecture: one of the paper's networks; None for a module of the user's, which the file does not hold.
    precision: of its products, float32 or bfloat16.
    class_names: one per output.
    about: where it came from: method, dataset, seed, run, accuracy, ...: for people.
    recipe: the configuration, and the hashes of the frozen weights that come again from the seed, where one is needed.
    given: the module that the user gave for `architecture` None.
    """

    layers: Mapping[str, Layer]
    values: Mapping[str, Float32[np.ndarray, "..."]] = field(default_factory=dict)
    architecture: Architecture | None
    precision: str = "float32"
    class_names: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] | None = None
    given: nn.Module | None = None

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the file, whole or not at all, and return its bytes.

        Raises:
            UserError: if it cannot be written.
        """
        from ssm.export.serialization import to_bytes

        data = to_bytes(self)
        save(path, data)
        return len(data)

    def to_numpy(self) -> dict[str, Int8[np.ndarray, "..."]]:
        """Return the ternary layers, in {-1, 0, 1}: kernels over their `constant`, or masks where that is None."""
        return {name: layer.ternary for name, layer in self.layers.items()}

    def to_dense(self) -> dict[str, Float32[np.ndarray, "..."]]:
        """Return the effective weights by layer, float32; needs JAX where they come again from the seed.

        Raises:
            UserError: if frozen weights come out otherwise on this machine.
        """
        return dict(self._kernels)

    def to_scipy(self) -> dict[str, csr_array]:
        """Return the effective weights by layer as sparse rows; more than two dimensions become [-1, out]."""
        from scipy.sparse import csr_array

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
    def module(self) -> nn.Module:
        """The net as a plain Flax module."""
        from ssm.export.flax_module import module

        return module(self)

    @cached_property
    def variables(self) -> dict[str, Any]:
        """The module's variables: with them it computes the trained net's logits, bit for bit."""
        from ssm.export.flax_module import variables

        return variables(self)

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The compiled function from uint8 images to logits, of a batch."""
        from ssm.export.flax_module import compiled

        return compiled(self)

    def logits(self, images: np.ndarray) -> np.ndarray:
        """Return the logits [n, classes] of images uint8 [n, height, width, channels], as training computes them."""
        from ssm.export.flax_module import logits

        return logits(self, images)

    def runtime(self) -> Runtime:
        """Return the net for inference without JAX, without what can't influence its output."""
        return self.compact().runtime()

    def full_runtime(self) -> Runtime:
        """Return the net for inference without JAX with all its units, for those who look at them."""
        from ssm.export.runtime import Runtime

        net = self.known()
        return Runtime(graph(net), self._kernels, self.norms(), inputs=net.inputs, class_names=self.class_names)

    def compact(self) -> Compact:
        """Return the net without the inputs, units and channels that cannot influence its output."""
        from ssm.export.compaction import compact

        net = self.known()
        return compact(graph(net), self._kernels, self.norms(), inputs=net.inputs, class_names=self.class_names)

    def norms(self) -> dict[str, Norm]:
        """Return the batch normalisations as factors and offsets, by name."""
        from ssm.export.runtime import Norm

        def of(name: str) -> Norm:
            def value(collection: str, what: str, usual: float) -> Any:
                return self.values.get(f"{collection}/{name}/{what}", np.float32(usual))

            factor = value("params", "scale", 1) / np.sqrt(value("batch_stats", "var", 1) + np.float32(EPSILON))
            return Norm(factor, value("params", "bias", 0) - value("batch_stats", "mean", 0) * factor)

        return {name: of(name) for name in norms(graph(self.known()))}

    def known(self) -> Architecture:
        """Return the architecture; UserError where the module is the user's own."""
        if self.architecture is None:
            raise UserError("this net's module is the user's own: its operations are known to Flax alone")
        return self.architecture

    @cached_property
    def _kernels(self) -> dict[str, np.ndarray]:
        if self.recipe is None:
            return {name: _times(layer) for name, layer in self.layers.items()}
        from ssm.export.flax_module import frozen_kernels

        frozen = frozen_kernels(self)
        return {
            name: _times(layer) if layer.constant is not None else layer.ternary.astype(np.float32) * frozen[name]
            for name, layer in self.layers.items()
        }


def _times(layer: Layer) -> np.ndarray:
    assert layer.constant is not None
    return layer.ternary.astype(np.float32) * np.float32(layer.constant)


def kernel_path(layer: str) -> tuple[str, ...]:
    """Return a layer's path in the params: `Dense_0` is the layer of `Dense_0/kernel`, other parameters say all."""
    path = tuple(layer.split("/"))
    return path if path[-1] == "embedding" else (*path, "kernel")


def digest(array: np.ndarray) -> str:
    """Return 16 hex digits of the SHA-256 of an array's bytes in row-major order."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def load(path: str | os.PathLike[str], *, module: nn.Module | None = None, most_weights: int | None = None) -> Artifact:
    """Read an artefact; no code in it is run, and no length in it believed.

    module: the net, where it is the user's own (`Artifact.architecture` None).
    most_weights: larger nets are refused (default 2**28, one byte each in memory).

    Raises:
        UserError: naming the file, if it is missing, damaged, too large, or not what it says it is.
    """
    from ssm.export.container import read
    from ssm.export.serialization import MOST_WEIGHTS, from_bytes

    if not Path(path).is_file():  # a device or a pipe may have no end
        raise UserError(f"{path} cannot be read: it is no file" if Path(path).exists() else f"{path} does not exist")
    try:
        data = read(path)
        return from_bytes(data, module=module, most_weights=MOST_WEIGHTS if most_weights is None else most_weights)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
