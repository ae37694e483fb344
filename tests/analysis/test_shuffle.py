import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.analysis import shuffled


@given(hnp.arrays(np.int8, hnp.array_shapes(max_dims=4), elements=st.integers(-1, 1)), st.integers(0, 9))
def test_shape_and_shares_stay(mask, seed):
    before = mask.copy()
    found = shuffled(mask, np.random.default_rng(seed))
    assert found.shape == mask.shape and found.dtype == np.int8
    np.testing.assert_array_equal(np.sort(found, axis=None), np.sort(mask, axis=None))
    np.testing.assert_array_equal(mask, before)


def test_every_order_is_as_likely():
    mask, rng = np.array([[1], [0], [-1]], np.int8), np.random.default_rng(0)
    orders = [tuple(shuffled(mask, rng)[:, 0].tolist()) for _ in range(6000)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 6 and abs(counts - 1000).max() < 150


def test_it_goes_across_rows_and_columns():
    mask = np.zeros((20, 30), np.int8)
    mask[3] = 1
    found = shuffled(mask, np.random.default_rng(0))
    assert found.sum() == 30 and (found.sum(axis=1) > 0).sum() > 10
