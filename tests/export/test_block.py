import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.analysis import sizes
from ssm.errors import UserError
from ssm.export.block import MOST, _bits, _block, _cut, block_of, classes, cost, joined
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
    assert block.rows.tolist() == [1, 0, 1, 1] * 5
    assert block.columns.tolist() == [1, 0, 1] * 5
    (elements,) = block.elements
    np.testing.assert_array_equal(elements, np.tile([[1, -1], [0, 1], [-1, 0]], (5, 5)))
    assert block.form == ((15, 0), (10, 0), (count(elements),))


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
    counts = block.form.counts(shape)
    assert counts == [count(part) for part in block.parts()]
    np.testing.assert_array_equal(joined(list(decode(words, counts)), shape), layer)


@pytest.mark.parametrize("layer", [np.ones((4, 3)), np.zeros((2**31 - 1, 0)), np.zeros(5), np.eye(6)])
def test_what_saves_nothing_stays_as_it_is(layer):
    assert block_of(layer.astype(np.int8)) is None


def test_a_layer_of_zeros_is_a_block_of_nothing():
    layer = np.zeros((300, 100), np.int8)
    assert block_of(layer) is None  # either way it takes no bits


def test_two_classes_of_rows_and_columns_by_hand():
    """The cuts are where the density changes; rows and columns of zeros are of no class."""
    draw = np.random.default_rng(0)
    layer = np.zeros((300, 200), np.int8)
    for rows, columns, density in ((0, 0, 0.9), (0, 1, 0.3), (1, 0, 0.2), (1, 1, 0.02)):
        place = np.ix_(np.arange(300) % 3 == rows, np.arange(200) % 4 == columns)
        layer[place] = draw.choice((-1, 1), layer[place].shape) * (draw.random(layer[place].shape) < density)
    block = block_of(layer)
    assert block.rows.tolist() == [1, -1, 0] * 100 and block.columns.tolist() == [1, -1, 0, 0] * 50
    assert block.form[:2] == ((100, 100), (50, 50))
    for part, (rows, columns) in zip(block.elements, ((0, 0), (0, 1), (1, 0), (1, 1)), strict=True):
        np.testing.assert_array_equal(part, layer[rows::3, columns::4])
    words, counts = encode(block.parts()), block.form.counts(layer.shape)
    np.testing.assert_array_equal(joined(list(decode(words, counts)), layer.shape), layer)
    assert 8 * words.nbytes <= sum(map(cost, counts)) + 64


def test_rows_alone_may_have_two_classes_and_equal_ones_have_one():
    draw = np.random.default_rng(0)
    layer = (draw.random((400, 90)) < np.repeat([0.5, 0.02], 200)[:, None]).astype(np.int8)
    layer[np.arange(400), np.arange(400) % 90] = 1  # no row of zeros
    block = block_of(layer)
    assert block.form.rows == (200, 200) and block.form.columns == (90, 0)
    assert [part.shape for part in block.elements] == [(200, 90), (200, 0), (200, 90), (200, 0)]
    assert [set(each.tolist()) for each in classes(np.ones((5, 4), np.int8))] == [{1}, {1}]
    assert [set(each.tolist()) for each in classes(np.zeros((5, 4), np.int8))] == [{0}, {0}]


@pytest.mark.parametrize("shape", [(MOST + 1, 4), (4, MOST + 1)])
def test_of_very_many_rows_no_classes_are_sought(shape):
    layer = np.zeros(shape, np.int8)
    layer[:3, :3] = 1
    tracemalloc.start()
    block = block_of(layer)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert block.form.rows == block.form.columns == (3, 0) and len(block.elements) == 1
    assert most < 16 * layer.size


@given(hnp.arrays(np.int8, hnp.array_shapes(min_dims=1, max_dims=4, max_side=6), elements=st.integers(-1, 1)))
def test_every_block_is_its_layer_again(layer):
    matrix = layer.reshape(-1, layer.shape[-1])
    for block in (block_of(layer), _block(matrix, *classes(matrix))):
        if block is not None:
            flat = [part.reshape(-1) for part in block.parts()]
            np.testing.assert_array_equal(joined(flat, layer.shape), layer)
            assert block.form.counts(layer.shape) == [count(part) for part in flat]


@given(
    hnp.arrays(np.int8, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=st.integers(-1, 1)),
    st.integers(0, 1),
)
def test_a_cut_takes_the_fewest_bits_of_all_cuts_by_density(matrix, split):
    """By trying all of them, with columns of one class or two."""
    columns = matrix.any(0).astype(np.int8)
    columns[: matrix.shape[1] // 2 * split] *= -1
    found = _cut(matrix, columns)
    order = np.argsort(-np.count_nonzero(matrix, axis=1), kind="stable")[: matrix.any(1).sum()]
    bits = []
    for first in range(1, len(order) + 1):
        rows = np.zeros(len(matrix), np.int8)
        rows[order[:first]], rows[order[first:]] = 1, -1
        bits.append(_bits(_block(matrix, rows, columns)))
    assert _bits(_block(matrix, found, columns)) == pytest.approx(min(bits, default=0), abs=1e-6)


def test_a_live_row_of_zeros_is_an_error():
    one = np.ones(2, np.int8)
    for elements in ([1, 1, 0, 0], [1, 0, 1, 0]):
        with pytest.raises(UserError, match="said to be live, and has only zeros"):
            joined([one, one, np.asarray(elements, np.int8)], (2, 2))
