import subprocess
import sys

import numpy as np
import pytest

from ssm.analysis import ALL, by_layer, equality, flip_rate, moves

SMALL = np.array([[[1, 0]], [[1, 1]]], np.int8)  # two seeds, one input, two outputs
LARGE = np.array([[[0, 0, 1], [1, 1, 0]], [[0, 0, 1], [1, -1, -1]]], np.int8)


def test_all_is_the_mean_over_all_elements():
    found = by_layer(equality, {"Dense_0": LARGE, "Dense_1": SMALL})
    assert list(found) == ["Dense_0", "Dense_1", ALL]
    assert (found["Dense_0"].same, found["Dense_1"].same) == (pytest.approx(4 / 6), 0.5)
    assert found[ALL].same == pytest.approx(5 / 8)


def test_numbers_arrays_and_named_tuples_are_averaged_and_options_passed_on():
    masks = {"Dense_0": LARGE, "Dense_1": SMALL}
    np.testing.assert_allclose(by_layer(flip_rate, masks)[ALL], [3 / 8])
    assert by_layer(lambda mask, *, add: float(mask.max()) + add, masks, add=2)[ALL] == 3.0
    assert by_layer(equality, masks, absolute=True)["Dense_0"].same == pytest.approx(5 / 6)
    np.testing.assert_allclose(by_layer(moves, masks, masks)[ALL].kept, [4 / 8, 6 / 8])


def test_other_layers_or_none_are_refused():
    with pytest.raises(ValueError, match="no layers"):
        by_layer(equality, {})
    with pytest.raises(ValueError, match="not the same"):
        by_layer(moves, {"Dense_0": SMALL}, {"Dense_1": SMALL})


def test_analysis_needs_no_jax():
    code = "import sys, ssm.analysis; sys.exit('jax' in sys.modules or 'matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
