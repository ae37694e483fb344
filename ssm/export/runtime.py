"""Inference without JAX: a net's operations on NumPy, its dense layers as sparse matrices of SciPy.

    net = ssm.load("net.ssm").runtime()
    probabilities = net.probabilities(images)  # uint8 [n, height, width, channels]

docs/artefacts.md compares its speed with dense NumPy, JAX and onnxruntime, and says what limits it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8
from scipy.sparse import csr_array
from scipy.special import softmax

from ssm.errors import UserError
from ssm.export.images import plain_array, raw_images
from ssm.models.graph import Node

# Densities up to which a sparse product is faster, for one image and for many (inference.py --densities).
SPARSE_BELOW, SPARSE_BATCH_BELOW = 0.05, 0.12
BLOCK_BYTES = 32 << 20  # of the patches that a convolution builds at once

Matrix = Float32[np.ndarray, "inputs outputs"]


class Norm(NamedTuple):
    """A batch normalisation at inference: x * factor + offset, float32 scalars or [channels]."""

    factor: Float32[np.ndarray, "..."]
    offset: Float32[np.ndarray, "..."]


def standardize(images: UInt8[np.ndarray, "n h w c"]) -> Float32[np.ndarray, "n h w c"]:
    """Return each image minus its mean, over its standard deviation; a constant image becomes 0.

    Equal to `ssm.data.standardize`, which training uses, up to rounding.
    """
    values = np.asarray(images).astype(np.float32).reshape(len(images), -1)
    values -= values.mean(axis=1, keepdims=True)
    deviation = np.sqrt(np.square(values).mean(axis=1, keepdims=True))
    values /= np.maximum(deviation, np.float32(1 / math.sqrt(values.shape[1])))
    return values.reshape(images.shape)


_ZERO, _ONE = np.float32(0), np.float32(1)


def elu(x: Float32[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Return x above 0, exp(x) - 1 at or below it (equation 2)."""
    below = np.minimum(x, _ZERO)
    np.exp(below, below)
    np.subtract(below, _ONE, below)
    return np.maximum(x, below)  # exp(x) - 1 is never below x


class Runtime:
    """A net prepared for inference: its operations, and its kernels in the form in which they are multiplied.

    `kernels` are the effective weights by layer, float32 [in, out] or [height, width, in, out]; `norms` the batch
    normalisations.  Dense layers with few remaining weights are kept as sparse matrices.
    Raises UserError where an operation has no kernel.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        kernels: Mapping[str, np.ndarray],
        norms: Mapping[str, Norm],
        *,
        inputs: tuple[int, ...],
        class_names: Sequence[str] = (),
    ) -> None:
        self.inputs = tuple(inputs)
        self.class_names = tuple(class_names)
        self._size = " x ".join(map(str, self.inputs))
        self._nodes = tuple(nodes)
        self._functions = [self._function(node, kernels, norms) for node in nodes[1:]]
        # Most nets are chains: each operation takes the previous one's output.
        self._chain = all(node.inputs == (before.name,) for before, node in pairwise(nodes))
        pixels = self.inputs[0] * self.inputs[1]
        windows = [math.prod(kernels[node.name].shape[:3]) for node in nodes if node.op == "conv"]
        self._block = max(1, BLOCK_BYTES // (4 * pixels * max(windows))) if windows else None

    def __call__(self, images: Float32[np.ndarray, "n h w c"]) -> Float32[np.ndarray, "n classes"]:
        """Return the logits of standardised images (`standardize`); `logits` takes raw ones.

        Raises:
            UserError: for another dtype or shape, or images without a value below 0, which standardised ones have.
        """
        images = self._checked(images)
        if self._block is None or len(images) <= self._block:
            return self._run(images)
        starts = range(0, len(images), self._block)
        return np.concatenate([self._run(images[start : start + self._block]) for start in starts])

    def logits(self, images: UInt8[np.ndarray, "n h w c"]) -> Float32[np.ndarray, "n classes"]:
        """Return the logits of raw images, uint8 from 0 to 255; raises UserError for any others."""
        return self(standardize(raw_images(plain_array(images), self.inputs)))

    def probabilities(self, images: UInt8[np.ndarray, "n h w c"]) -> Float32[np.ndarray, "n classes"]:
        """Return the class probabilities of raw images, uint8 from 0 to 255; raises UserError for any others."""
        return softmax(self.logits(images), axis=1)

    def activations(self, images: Float32[np.ndarray, "n h w c"]) -> dict[str, np.ndarray]:
        """Return every operation's output by its name, [n, ...], for a few standardised images."""
        return {name: _batch_first(value) for name, value in self._all(self._checked(images)).items()}

    def _checked(self, images: Any) -> np.ndarray:
        images = images if isinstance(images, np.ndarray) else plain_array(images)
        wanted = "this net takes float32 [n, height, width, channels], standardised, of " + self._size
        if images.shape[1:] != self.inputs or images.dtype != np.float32 or not images.shape[0]:
            raise UserError(f"images are {images.dtype} {list(images.shape)}; {wanted}")
        # Of most standardised images the first value is below 0, and that is all the time that the check takes.
        if images.item(0) >= 0 and images.min() >= 0 and images.any():
            raise UserError(f"images have no value below 0; {wanted}; net.logits(images) takes raw ones")
        return images

    def _run(self, images: np.ndarray) -> np.ndarray:
        if not self._chain:
            return _batch_first(self._all(images)[self._nodes[-1].name])
        value = images
        for function in self._functions:
            value = function(value)
        return _batch_first(value)

    def _all(self, images: np.ndarray) -> dict[str, np.ndarray]:
        values = {"input": images}
        for node, function in zip(self._nodes[1:], self._functions, strict=True):
            values[node.name] = function(*(values[name] for name in node.inputs))
        return values

    def _function(
        self, node: Node, kernels: Mapping[str, np.ndarray], norms: Mapping[str, Norm]
    ) -> Callable[..., np.ndarray]:
        if node.op in ("dense", "conv") and node.name not in kernels:
            raise UserError(f"there is no kernel of {node.name}")
        match node.op:
            case "dense":
                return _dense(kernels[node.name])
            case "conv":
                return lambda x, kernel=kernels[node.name]: _conv(x, kernel, node.stride)
            case "norm":
                factor, offset = norms[node.name]
                return lambda x: x * factor + offset
            case "select":
                chosen = np.asarray(node.indices, np.intp)
                return lambda x: x.take(chosen, axis=0)
            case "flatten":
                # From here on features come first, as sparse products need them: [features, batch], or a vector.
                return lambda x: x.reshape(-1) if x.shape[0] == 1 else np.ascontiguousarray(x.reshape(len(x), -1).T)
            case "mean":
                return lambda x: np.ascontiguousarray(x.mean(axis=(1, 2)).T).squeeze(1 if x.shape[0] == 1 else ())
            case _:
                return {"elu": elu, "pool": _pool, "smooth_pool": _smooth_pool, "add": np.add}[node.op]


def _batch_first(value: np.ndarray) -> np.ndarray:
    return value[None] if value.ndim == 1 else value.T if value.ndim == 2 else value


def _dense(kernel: Matrix) -> Callable[[np.ndarray], np.ndarray]:
    """Return the product of a kernel's transpose with [inputs, batch], or a vector [inputs]."""
    matrix = np.ascontiguousarray(kernel.T, np.float32)
    kept = np.count_nonzero(matrix)
    if kept > SPARSE_BATCH_BELOW * matrix.size:
        return matrix.dot
    sparse = csr_array(matrix)
    if kept <= SPARSE_BELOW * matrix.size:
        return sparse.__matmul__
    return lambda x: matrix @ x if x.ndim == 1 else sparse @ x


def _conv(x: np.ndarray, kernel: np.ndarray, stride: int) -> np.ndarray:
    window, _, inputs, outputs = kernel.shape
    x = x[:, ::stride, ::stride] if window == 1 else x
    batch, height, width, _ = x.shape
    if window > 1:
        edge = window // 2
        padded = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
        views = np.lib.stride_tricks.sliding_window_view(padded, (window, window), axis=(1, 2))[:, ::stride, ::stride]
        batch, height, width = views.shape[:3]
        x = views.transpose(0, 1, 2, 4, 5, 3)
    product = x.reshape(-1, window * window * inputs) @ kernel.reshape(-1, outputs)
    return product.reshape(batch, height, width, outputs)


def _pool(x: np.ndarray) -> np.ndarray:
    batch, height, width, channels = x.shape
    windows = x[:, : height // 2 * 2, : width // 2 * 2].reshape(batch, height // 2, 2, width // 2, 2, channels)
    return windows.max(axis=(2, 4))


def _smooth_pool(x: np.ndarray) -> np.ndarray:
    for axis in (1, 2):  # one axis after the other
        edges = [(0, 0)] * 4
        edges[axis] = (1, 1)
        padded, size = np.pad(x, edges, constant_values=-np.inf), x.shape[axis]
        parts = [np.take(padded, range(start, start + size), axis=axis) for start in range(3)]
        x = np.maximum(np.maximum(parts[0], parts[1]), parts[2])
    return x
