"""Inputs and expected values of the authors' own program (see golden/authors-fcn.json and golden/authors-conv.json)."""

import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flax import linen as nn

from ssm.models import MODELS


def _cases(name: str) -> list[dict[str, Any]]:
    file = json.loads((Path(__file__).parents[1] / "golden" / name).read_text())
    assert file["seed"] == SEED
    return file["cases"]


SEED = 20220131
CASES = _cases("authors-fcn.json")
MASKED, BASELINE = CASES
"""The signed Supermask of the FCN, and its dense baseline."""
CONVOLUTIONAL = _cases("authors-conv.json")
"""Conv2 to Conv8, masked and dense; ResNet20 at three widths, and dense; ResNet56 and ResNet110, masked."""


class Inputs(NamedTuple):
    """Arrays by layer name, in the program's order; images [batch, ...] float32; labels [batch] int64."""

    weights: dict[str, np.ndarray]
    scores: dict[str, np.ndarray]
    images: np.ndarray
    labels: np.ndarray


def inputs(case: dict[str, Any]) -> Inputs:
    """Return the arrays that a case was made with, drawn again from its seed.

    `weights` are frozen in a masked case and trained in a dense one, which has no use for `scores`.
    """
    weights, scores = {}, {}
    for index, (name, shape) in enumerate(case["layers"]):
        rng = np.random.default_rng([SEED, index])
        field = math.prod(shape[:-2])
        fan_in = field * shape[-2]
        # The order of the two draws is part of the definition.
        signs = rng.integers(0, 2, size=shape) * 2 - 1
        weights[name] = (signs * np.sqrt(2 * case["factor"] / fan_in)).astype(np.float32)
        bound = score_bound(shape)
        scores[name] = rng.uniform(-bound, bound, size=shape).astype(np.float32)
    batch = case["batch"]
    images = np.random.default_rng([SEED, 1000])
    if case["name"] == "fcn":
        images = images.standard_normal((batch, 784)).astype(np.float32)
    else:
        images = (images.standard_normal((batch, 32, 32, 3)) * 0.5).astype(np.float32)
    labels = np.random.default_rng([SEED, 1001]).integers(0, case["classes"], size=batch)
    return Inputs(weights, scores, images, labels)


def score_bound(shape: list[int]) -> float:
    """Return b of the scores' distribution U(-b, b) in a layer with a kernel of this shape."""
    field = math.prod(shape[:-2])
    return float(np.sqrt(6 / (field * shape[-2] + field * shape[-1])))


def identify(case: dict[str, Any]) -> str:
    """Return a case's name in a test: 'conv4-masked', say."""
    return f"{case['name']}-{'masked' if case['masked'] else 'baseline'}"


def net(case: dict[str, Any]) -> nn.Module:
    """Return our net of a case, without kernels.

    Scale and offset of its batch normalisation, which don't move in the program's steps, are left out.
    """
    name, _, width = case["name"].partition("x")
    options: dict[str, Any] = {"classes": case["classes"], "width": float(width or 1)}
    if case["batchnorm_layers"]:
        options["batch_norm"] = "frozen" if case["masked"] else "statistics"
        options["projections"] = len({layer for layer, _ in case["layers"] if re.fullmatch(r"b1_rn\d+/conv_sc", layer)})
    return MODELS[name](**options)


def paths(case: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the path of each of the program's layers in our params."""
    names = [name for name, _ in case["layers"]]
    found: dict[str, tuple[str, ...]]
    if not case["batchnorm_layers"]:
        found = {}
        for kind, ours in (("conv_", "Conv"), ("linear_", "Dense")):
            chosen = [name for name in names if name.startswith(kind)]
            found |= {name: (f"{ours}_{index}", "kernel") for index, name in enumerate(chosen)}
        return found
    blocks = len({block for name in names if (block := name.partition("/")[0]).startswith("b1_")})
    found = {"conv1": ("Conv_0", "kernel"), "fc": ("Dense_0", "kernel")}
    for name in names:
        if match := re.fullmatch(r"b(\d)_rn(\d+)/conv(2a|2b|_sc)", name):
            index = (int(match[1]) - 1) * blocks + int(match[2]) - 1
            layer = {"2a": "Conv_0", "2b": "Conv_1", "_sc": "Conv_2"}[match[3]]
            found[name] = (f"Block_{index:02d}", layer, "kernel")
    return found


def summary(array: Any) -> dict[str, Any]:
    """Return the summary that the file keeps of an array: L2 norm, sum, first and last four, C order."""
    flat = np.asarray(array, np.float64).ravel()
    return {
        "l2": float(np.linalg.norm(flat)),
        "sum": float(flat.sum()),
        "first": flat[:4].tolist(),
        "last": flat[-4:].tolist(),
    }
