"""Inference without JAX: a net's operations on NumPy, its dense layers as sparse matrices of SciPy.

    net = ssm.load("net.ssm").runtime()
    probabilities = net.probabilities(images)  # uint8 [n, height, width, channels]

docs/speed.md says how fast it is beside dense NumPy, JAX and onnxruntime, and what bounds it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8
from scipy.sparse import csr_array
from scipy.special import softmax

from ssm.errors import UserError
from ssm.graph import Node

try:  # what `matrix @ vector` ends in, without its 5 microseconds of checks; not a public name
    from scipy.sparse._sparsetools import csr_matvec
except ImportError:
    csr_matvec = None

SPARSE_BELOW = 0.15  # density up to which a sparse product is faster than a dense one (benchmarks/inference.py)
BLOCK_BYTES = 32 << 20  # of patches that a convolution makes at once

Matrix = Float32[np.ndarray, "inputs outputs"]


class Norm(NamedTuple):
    """A batch normalisation at inference: x * factor + offset, float32 scalars or [channels]."""

    factor: Float32[np.ndarray, "..."]
    offset: Float32[np.ndarray, "..."]


def standardize(images: UInt8[np.ndarray, "n h w c"]) -> Float32[np.ndarray, "n h w c"]:
    """Return each image minus its mean, over its standard deviation; a constant image becomes 0.

    Source: as `ssm.data.standardize`, which is what training sees, up to rounding.
    """
    values = np.asarray(images).astype(np.float32).reshape(len(images), -1)
    values -= values.mean(axis=1, keepdims=True)
    deviation = np.sqrt(np.square(values).mean(axis=1, keepdims=True))
    values /= np.maximum(deviation, np.float32(1 / math.sqrt(values.shape[1])))
    return values.reshape(images.shape)


def elu(x: Float32[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Return x above 0, exp(x) - 1 at or below it (equation 2)."""
    below = np.minimum(x, 0)
    np.exp(below, out=below)
    below -= 1
    return np.maximum(x, below)  # exp(x) - 1 is never below x


class Runtime:
    """A net made ready for inference: its operations, and its kernels as they are multiplied.

    `kernels` are the effective weights by layer, float32 [in, out] or [height, width, in, out]; `norms` the batch
    normalisations.  Dense layers of less than `SPARSE_BELOW` density are kept as sparse matrices.
    Raises UserError where an operation lacks its kernel.
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
        self._last = nodes[-1].name
        self._patches = 0  # bytes of the largest convolution's patches, per image
        self._steps = [(node.name, node.inputs, self._function(node, kernels, norms)) for node in nodes[1:]]
        self._uses = [name for _, inputs, _ in self._steps for name in inputs]
        size = self.inputs[0] * self.inputs[1] * 4
        self._patches = max([0, *(size * math.prod(kernels[n.name].shape[:3]) for n in nodes if n.op == "conv")])

    def __call__(self, images: Float32[np.ndarray, "n h w c"]) -> Float32[np.ndarray, "n classes"]:
        """Return the logits of standardised images."""
        images = np.asarray(images, np.float32)
        if images.ndim != 4 or images.shape[1:] != self.inputs or not len(images):
            wanted = " x ".join(map(str, self.inputs))
            raise UserError(f"images of shape {list(images.shape)}: this net takes [n, height, width, channels], {wanted}")
        if not self._patches:
            return self._run(images)
        block = max(1, BLOCK_BYTES // self._patches)
        return np.concatenate([self._run(images[start : start + block]) for start in range(0, len(images), block)])

    def logits(self, images: UInt8[np.ndarray, "n h w c"]) -> Float32[np.ndarray, "n classes"]:
        """Return the logits of images as they come, 0 to 255."""
        return self(standardize(np.asarray(images)))

    def probabilities(self, images: UInt8[np.ndarray, "n h w c"]) -> Float32[np.ndarray, "n classes"]:
        """Return the classes' probabilities for images as they come, 0 to 255."""
        return softmax(self.logits(images), axis=1)

    def activations(self, images: Float32[np.ndarray, "n h w c"]) -> dict[str, np.ndarray]:
        """Return every operation's output by its name, [n, ...], for a few standardised images."""
        return {name: _batch_first(value) for name, value in self._all(np.asarray(images, np.float32), keep=True).items()}

    def _run(self, images: np.ndarray) -> np.ndarray:
        return _batch_first(self._all(images, keep=False)[self._last])

    def _all(self, images: np.ndarray, *, keep: bool) -> dict[str, np.ndarray]:
        values = {"input": images}
        left = {} if keep else {name: self._uses.count(name) for name in dict.fromkeys(self._uses)}
        for name, inputs, function in self._steps:
            values[name] = function(*(values[each] for each in inputs))
            for each in inputs:
                if not keep:
                    left[each] -= 1
                    if not left[each]:
                        del values[each]
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
                return lambda x: np.ascontiguousarray(x[chosen])
            case "flatten":
                # From here on features come first, [features, batch]: as sparse products take them.
                return lambda x: np.ascontiguousarray(x.reshape(len(x), -1).T)
            case "mean":
                return lambda x: np.ascontiguousarray(x.mean(axis=(1, 2)).T)
            case _:
                return {"elu": elu, "pool": _pool, "smooth_pool": _smooth_pool, "add": np.add}[node.op]


def _batch_first(value: np.ndarray) -> np.ndarray:
    return value.T if value.ndim == 2 else value


def _dense(kernel: Matrix) -> Callable[[np.ndarray], np.ndarray]:
    """Return the product of a kernel's transpose with [inputs, batch]."""
    matrix = np.ascontiguousarray(kernel.T, np.float32)
    if np.count_nonzero(matrix) > SPARSE_BELOW * matrix.size:
        return lambda x: matrix @ x
    sparse = csr_array(matrix)
    if csr_matvec is None:
        return lambda x: sparse @ x
    rows, columns = sparse.shape
    indptr, indices, data = sparse.indptr, sparse.indices, sparse.data

    def product(x: np.ndarray) -> np.ndarray:
        if x.shape[1] != 1:
            return sparse @ x
        result = np.zeros((rows, 1), np.float32)
        csr_matvec(rows, columns, indptr, indices, data, x, result)
        return result

    return product


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
    for axis in (1, 2):  # one way after the other
        edges = [(0, 0)] * 4
        edges[axis] = (1, 1)
        padded, size = np.pad(x, edges, constant_values=-np.inf), x.shape[axis]
        parts = [np.take(padded, range(start, start + size), axis=axis) for start in range(3)]
        x = np.maximum(np.maximum(parts[0], parts[1]), parts[2])
    return x
