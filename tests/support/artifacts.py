"""Small nets that tests of artefacts share."""

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ssm.export import Artifact, Layer
from ssm.models.graph import Architecture

# Kernels [4, 3], [3, 1] and [1, 2]: 17 weights.
TINY = Architecture(model="fcn", inputs=(2, 2, 1), classes=2, width=0.01)


def tiny(**other) -> Artifact:
    """Return a net of 17 weights."""
    layers = {
        "Dense_0": Layer(np.asarray([[1, 0, -1], [0, 0, 0], [0, 1, 0], [0, 0, 1]], np.int8), 0.5),
        "Dense_1": Layer(np.asarray([[0], [-1], [1]], np.int8), 0.25),
        "Dense_2": Layer(np.asarray([[1, -1]], np.int8), 1.0),
    }
    fields = {"layers": layers, "architecture": TINY, "class_names": ("no", "yes"), "about": {"seed": 7}} | other
    return Artifact(**fields)


DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "format.md"


@cache
def second_reader() -> SimpleNamespace:
    """Return the reader that docs/format.md ends with: `read` and `decode`, in nothing but Python."""
    found: dict = {}
    exec(re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)[-1], found)
    return SimpleNamespace(read=found["read"], decode=found["decode"])
