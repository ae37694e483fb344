import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.analysis import sizes
from ssm.errors import UserError
from ssm.export.block import block_of, cost, counts_of, joined
from ssm.export.coding import Counts, count, decode, encode

# A row of zeros out of 4, and a column out of 3.
LAYER = np.asarray([[1, 0, -1], [0, 0, 0], [0, 0, 1], [-1, 0, 0]], np.int8)


def half_dead(shape=(60, 40), density=0.5, seed=0):
    draw = np.random.default_rng(seed)
    layer = draw.choice((-1, 1), shape) * (draw.random(shape) < density)
    layer[..., shape[-1] // 2 :] = 0
    layer[1::2] = 0
    return layer.astype(np.int8)


def test_the_block_by_hand():
    large = np.tile(LAYER, (5, 5))  # of the small one the block costs more than it saves
    assert block_of(LAYER) is None
    block = block_of(large)
    assert block.rows.tolist() == [True, False, True, True] * 5
    assert block.columns.tolist() == [True, False, True] * 5
    np.testing.assert_array_equal(block.elements, np.tile([[1, -1], [0, 1], [-1, 0]], (5, 5)))
    assert block.live == (15, 10)


def test_the_cost_is_the_order_0_entropy():
    assert cost(Counts(1, 1, 4)) == 4 * (2 * 0.25 * 2 + 0.5 * 1)
    assert cost(Counts(0, 0, 9)) == cost(Counts(0, 9, 9)) == cost(Counts(0, 0, 0)) == 0
    layer = half_dead()
    assert cost(count(layer)) == pytest.approx(8 * sizes(layer).entropy)


@pytest.mark.parametrize("shape", [(60, 40), (3, 3, 8, 40), (7, 300)])
def test_a_layer_with_dead_units_takes_less(shape):
    layer = half_dead(shape)
    block = block_of(layer)
    words = encode(block.parts())
    assert 8 * words.nbytes <= sum(cost(count(part)) for part in block.parts()) + 64
    assert words.nbytes < 0.8 * encode([layer]).nbytes
    counts = counts_of(count(layer), shape, block.live)
    assert counts == [count(part) for part in block.parts()]
    np.testing.assert_array_equal(joined(list(decode(words, counts)), shape), layer)


@pytest.mark.parametrize("layer", [np.ones((4, 3)), np.zeros((2**31 - 1, 0)), np.zeros(5), np.eye(6)])
def test_what_saves_nothing_stays_as_it_is(layer):
    assert block_of(layer.astype(np.int8)) is None


def test_a_layer_of_zeros_is_a_block_of_nothing():
    layer = np.zeros((300, 100), np.int8)
    assert block_of(layer) is None  # either way it takes no bits


@given(hnp.arrays(np.int8, hnp.array_shapes(min_dims=1, max_dims=4, max_side=6), elements=st.integers(-1, 1)))
def test_every_block_is_its_layer_again(layer):
    if (block := block_of(layer)) is not None:
        flat = [part.reshape(-1) for part in block.parts()]
        np.testing.assert_array_equal(joined(flat, layer.shape), layer)


def test_a_live_row_of_zeros_is_an_error():
    one = np.ones(2, np.int8)
    for elements in ([1, 1, 0, 0], [1, 0, 1, 0]):
        with pytest.raises(UserError, match="said to be live, and has only zeros"):
            joined([one, one, np.asarray(elements, np.int8)], (2, 2))
