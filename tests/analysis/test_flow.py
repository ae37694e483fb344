import math

import numpy as np
import pytest

from ssm.analysis.flow import carriers, contributions
from ssm.errors import UserError
from ssm.export.runtime import elu

KERNELS = [np.array([[1.0, 0.0], [0.0, -1.0], [2.0, 0.0]]), np.array([[3.0, 0.0], [1.0, 5.0]])]


def test_by_hand():
    # Before ELU 1 + 2 * 0.5 = 2 and -1; after it 2 and 1/e - 1; the logit is 3 * 2 + (1/e - 1).
    pixels, units = contributions(KERNELS, np.array([1.0, 1.0, 0.5]), output=0)
    assert units == pytest.approx([6, math.exp(-1) - 1])
    assert pixels == pytest.approx([3, math.exp(-1) - 1, 3])
    pixels, units = contributions(KERNELS, np.array([1.0, 1.0, 0.5]), output=1)
    assert units == pytest.approx([0, 5 * (math.exp(-1) - 1)])
    assert pixels == pytest.approx([0, 5 * (math.exp(-1) - 1), 0])


def test_they_are_differences_of_the_net_itself():
    rng = np.random.default_rng(0)
    kernels = [rng.normal(size=shape) for shape in ((6, 5), (5, 4), (4, 3))]
    image = rng.normal(size=6)

    def logit(x, layers):
        for kernel in layers[:-1]:
            x = elu(x @ kernel)
        return (x @ layers[-1])[2]

    values = [image, elu(image @ kernels[0]), elu(elu(image @ kernels[0]) @ kernels[1])]
    found = contributions(kernels, image, output=2)
    for place, given in enumerate(values):
        for unit in range(len(given)):
            without = np.where(np.arange(len(given)) == unit, 0, given)
            rest = kernels[place:]
            assert found[place][unit] == pytest.approx(logit(given, rest) - logit(without, rest), abs=1e-6)
    assert found[-1].sum() == pytest.approx(logit(image, kernels), abs=1e-6)


def test_a_unit_without_weights_contributes_nothing():
    kernels = [KERNELS[0].copy(), KERNELS[1]]
    kernels[0][1] = 0
    pixels, units = contributions(kernels, np.array([1.0, 9.0, 0.5]), output=0)
    assert pixels[1] == 0 and units[1] == 0


def test_what_has_no_way_to_the_logit_contributes_exactly_nothing():
    rng = np.random.default_rng(0)
    kernels = [
        rng.normal(size=shape) * (rng.random(shape) < density)
        for shape, density in (((90, 80), 0.02), ((80, 60), 0.03), ((60, 4), 0.1))
    ]
    image = rng.normal(size=90) * (np.arange(90) > 9)
    pixels, first, second = contributions(kernels, image, output=1)
    ways = [kernels[2][:, 1] != 0]
    for kernel in (kernels[1], kernels[0]):
        ways.insert(0, ((kernel != 0) & ways[0]).any(axis=1))
    fed = ((kernels[0] != 0) & (image != 0)[:, None]).any(axis=0)
    np.testing.assert_array_equal(pixels != 0, ways[0] & (image != 0))
    np.testing.assert_array_equal(first != 0, ways[1] & fed)
    np.testing.assert_array_equal(second != 0, ways[2] & ((kernels[1] != 0) & fed[:, None]).any(axis=0))
    assert all(0 < np.count_nonzero(part) < part.size for part in (pixels, first, second))


@pytest.mark.parametrize(
    ("share", "few"),
    [(0.1, 1), (0.5, 1), (0.51, 2), (0.8, 2), (0.9, 3), (1.0, 4)],
)
def test_carriers_by_hand(share, few):
    assert carriers(np.array([1.0, -3.0, 0.0, 5.0, 1.0]), share=share) == few


def test_nothing_carries_nothing():
    assert carriers(np.zeros(3)) == 0


def test_a_raw_image_is_refused():
    with pytest.raises(UserError, match="the image is uint8, expected a standardised one"):
        contributions(KERNELS, np.array([1, 9, 5], np.uint8), output=0)
