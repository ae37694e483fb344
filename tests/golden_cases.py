"""Inputs and expected values of the authors' own program (see golden/authors-fcn.json)."""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_FILE = json.loads((Path(__file__).parent / "golden" / "authors-fcn.json").read_text())
SEED: int = _FILE["seed"]
CASES: list[dict[str, Any]] = _FILE["cases"]
MASKED, BASELINE = CASES
"""The signed Supermask of the FCN, and its dense baseline."""


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
        fan_in, fan_out = field * shape[-2], field * shape[-1]
        # The order of the two draws is part of the definition.
        signs = rng.integers(0, 2, size=shape) * 2 - 1
        weights[name] = (signs * np.sqrt(2 * case["factor"] / fan_in)).astype(np.float32)
        bound = np.sqrt(6 / (fan_in + fan_out))
        scores[name] = rng.uniform(-bound, bound, size=shape).astype(np.float32)
    batch = case["batch"]
    images = np.random.default_rng([SEED, 1000])
    if case["name"] == "fcn":
        images = images.standard_normal((batch, 784)).astype(np.float32)
    else:
        images = (images.standard_normal((batch, 32, 32, 3)) * 0.5).astype(np.float32)
    labels = np.random.default_rng([SEED, 1001]).integers(0, case["classes"], size=batch)
    return Inputs(weights, scores, images, labels)


def summary(array: Any) -> dict[str, Any]:
    """Return the summary that the file keeps of an array: L2 norm, sum, first and last four, C order."""
    flat = np.asarray(array, np.float64).ravel()
    return {
        "l2": float(np.linalg.norm(flat)),
        "sum": float(flat.sum()),
        "first": flat[:4].tolist(),
        "last": flat[-4:].tolist(),
    }
