import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.data.augment import crop_and_flip, shift
from ssm.data.standardize import standardize, standardized, statistics


def numbered(count, height=5, width=6, channels=2):
    """Images whose every value is another and none is 0."""
    return np.arange(1, count * height * width * channels + 1, dtype=np.float32).reshape(count, height, width, channels)


def by_hand(image, top, left, flip):
    """One crop of an image, pixel by pixel."""
    height, width, _ = image.shape
    result = np.zeros_like(image)
    for row in range(height):
        for column in range(width):
            y, x = row + top - 4, (width - 1 - column if flip else column) + left - 4
            if 0 <= y < height and 0 <= x < width:
                result[row, column] = image[y, x]
    return result


def all_draws(image):
    return {
        by_hand(image, top, left, flip).tobytes(): (top, left, flip)
        for top in range(9)
        for left in range(9)
        for flip in range(2)
    }


@pytest.mark.parametrize("shape", [(9, 10, 1), (10, 9, 3)])
def test_every_draw_occurs_at_its_rate(shape):
    image = numbered(1, *shape)[0]
    expected = all_draws(image)
    assert len(expected) == 162
    count = 162 * 200
    result = np.asarray(jax.jit(crop_and_flip)(jax.random.key(0), np.broadcast_to(image, (count, *shape))))
    seen = np.zeros((9, 9, 2))
    for one in result:
        seen[expected[one.tobytes()]] += 1  # a KeyError is an image that no offset and flip would give
    # Each of the 162 is binomial, mean 200 and standard deviation 14: five of those are never left by chance.
    assert abs(seen - 200).max() < 5 * 14.1
    np.testing.assert_allclose(seen.sum((0, 1)) / count, 1 / 2, atol=5 * 0.5 / count**0.5)
    for axes in ((1, 2), (0, 2)):
        np.testing.assert_allclose(seen.sum(axes) / count, 1 / 9, atol=5 * (8 / 81 / count) ** 0.5)


def test_draws_of_neighbours_and_of_keys_are_independent():
    image = numbered(1, 9, 10, 1)[0]
    expected = all_draws(image)
    images = np.broadcast_to(image, (4000, *image.shape))
    first, second = (
        np.array([expected[one.tobytes()] for one in np.asarray(crop_and_flip(jax.random.key(seed), images))])
        for seed in (0, 1)
    )
    pairs = [(first[:, a], first[:, b]) for a, b in ((0, 1), (0, 2), (1, 2))]  # top, left, flip of an image
    pairs += [(first[1:, i], first[:-1, i]) for i in range(3)] + [(first[:, i], second[:, i]) for i in range(3)]
    for one, other in pairs:
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / 4000**0.5


def test_each_image_keeps_its_own_content():
    images = numbered(50)
    result = np.asarray(crop_and_flip(jax.random.key(1), images))
    assert result.dtype == np.float32 and result.shape == images.shape
    for before, after in zip(images, result, strict=True):
        assert after.tobytes() in all_draws(before)


def test_draw_depends_on_key_and_position_alone():
    images = numbered(7)
    key = jax.random.key(5)
    whole = np.asarray(crop_and_flip(key, images))
    np.testing.assert_array_equal(crop_and_flip(key, images[:3]), whole[:3])
    others = np.concatenate([-images[:3], images[3:]])
    np.testing.assert_array_equal(crop_and_flip(key, others)[3:], whole[3:])
    np.testing.assert_array_equal(crop_and_flip(key, others)[:3], -whole[:3])
    assert (np.asarray(crop_and_flip(jax.random.key(6), images)) != whole).any()


def test_jit_vmap_and_scan_equal_the_loop():
    images = numbered(8, 32, 32, 3)
    keys = jax.random.split(jax.random.key(2), 3)
    loop = np.stack([crop_and_flip(key, images) for key in keys])
    np.testing.assert_array_equal([jax.jit(crop_and_flip)(key, images) for key in keys], loop)
    np.testing.assert_array_equal(jax.vmap(crop_and_flip, (0, None))(keys, images), loop)
    stacked = jnp.stack([images, images + 1, images + 2])
    each = np.stack([crop_and_flip(key, own) for key, own in zip(keys, stacked, strict=True)])
    np.testing.assert_array_equal(jax.vmap(crop_and_flip)(keys, stacked), each)
    scanned = jax.lax.scan(lambda _, key: (None, crop_and_flip(key, images)), None, keys)[1]
    np.testing.assert_array_equal(scanned, loop)


def test_a_shift_moves_by_a_pixel_at_most_and_repeats_the_border():
    image = numbered(1, 5, 6, 2)[0]
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), "edge")
    expected = {padded[y : y + 5, x : x + 6].tobytes(): (y, x) for y in range(3) for x in range(3)}
    count = 9 * 400
    result = np.asarray(jax.jit(shift)(jax.random.key(0), np.broadcast_to(image, (count, *image.shape))))
    seen = np.zeros((3, 3))
    for one in result:
        seen[expected[one.tobytes()]] += 1
    assert abs(seen - 400).max() < 5 * (count * 8 / 81) ** 0.5


def test_a_shift_depends_on_key_and_position_alone():
    images = numbered(7)
    whole = np.asarray(shift(jax.random.key(5), images))
    np.testing.assert_array_equal(shift(jax.random.key(5), images[:3]), whole[:3])
    assert (np.asarray(shift(jax.random.key(6), images)) != whole).any()


# The authors' second standardisation, after the augmentation


def test_standardized_against_float64():
    pixels = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3)).astype(np.uint8)
    moved = crop_and_flip(jax.random.key(0), standardize(pixels, *statistics(pixels)))
    result = np.asarray(jax.jit(standardized)(moved))
    exact = np.asarray(moved, np.float64).reshape(20, -1)
    deviations = exact - exact.mean(1, keepdims=True)
    expected = deviations / exact.std(1, keepdims=True)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result.reshape(20, -1), expected, atol=1e-5)
    assert exact.std(1).min() < 0.95  # so that the second pass does change something


def test_standardized_divides_by_no_less_than_the_floor():
    images = np.zeros((2, 2, 2, 1), np.float32)
    images[1, 0, 0, 0] = 0.1  # standard deviation 0.0433, below 1 / sqrt(4)
    result = np.asarray(standardized(images))
    np.testing.assert_array_equal(result[0], 0)
    np.testing.assert_allclose(result[1].ravel(), [0.15, -0.05, -0.05, -0.05], rtol=1e-6)
