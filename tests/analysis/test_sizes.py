import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.analysis import Sizes, compression, sizes, total
from ssm.models import MODELS

PAPER = json.loads((Path(__file__).parents[2] / "experiments" / "paper" / "paper.json").read_text())
MASK = np.array([[1, 0, 0, -1], [0, 0, 0, 0]], np.int8)


def test_sizes_by_hand():
    # Two values and two indices of 4 bytes, three pointers; shares 1/8, 6/8, 1/8 of 8 elements.
    entropy = (8 * 0.75 * math.log2(4 / 3) + 2 * 3) / 8
    assert sizes(MASK) == pytest.approx((32, 28, 2, entropy))


def test_a_convolution_is_reshaped_to_two_dimensions():
    mask = np.zeros((3, 3, 2, 2), np.int8)
    mask[0, :, 0, 0] = 1
    assert sizes(mask)[:3] == (144, 3 * 8 + 10 * 4, 9)


def test_sizes_of_masks_with_nothing_to_say():
    assert sizes(np.zeros((2, 3), np.int8)) == (24, 12, 2, 0)
    assert sizes(np.ones((2, 3), np.int8)) == (24, 60, 2, 0)


def test_totals():
    assert total([]) == (0, 0, 0, 0)
    assert total(Sizes(4 * n, n, n, n / 2) for n in (1, 2)) == (12, 3, 3, 1.5)


def test_compression_by_hand():
    assert compression({"Dense_0": MASK, "Dense_1": np.ones((1, 1), np.int8)}) == pytest.approx(1 - (28 + 16) / 36)


ROWS = [row for row in PAPER["rows"] if "compression_percent" in row]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['model']}-{row.get('width', 1)}" for row in ROWS])
def test_the_papers_rates_follow_from_its_remaining_weights(row):
    model = row["model"]
    net, side, channels = MODELS[model](width=row.get("width", 1)), *((28, 1) if model == "fcn" else (32, 3))
    made = jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, side, side, channels)))
    shapes = [leaf.shape for leaf in jax.tree.leaves(made["params"]) if leaf.ndim > 1]
    remaining = row["remaining_weights_percent"]["mean"] / 100
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    flat = np.diff(np.floor(remaining * np.arange(ends[-1] + 1))).astype(np.int8)
    layers = np.split(flat, ends[:-1])
    masks = {str(place): layer.reshape(shapes[place]) for place, layer in enumerate(layers)}
    # Of two decimals of the remaining weights, which count twice, and of the rate itself.
    assert 100 * compression(masks) == pytest.approx(row["compression_percent"], abs=0.015)


@given(hnp.arrays(np.int8, hnp.array_shapes(min_dims=2, max_dims=4), elements=st.integers(-1, 1)))
def test_the_bound_is_below_what_two_bits_take(mask):
    found = sizes(mask)
    assert 0 <= found.entropy <= math.log2(3) * mask.size / 8 + 1e-9 < found.two_bit
    assert found.dense == mask.astype(np.float32).nbytes
