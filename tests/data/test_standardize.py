import json
import pathlib

import jax
import numpy as np
import pytest

from ssm.data.standardize import standardize, statistics

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "per_image_standardization.json"


def golden_images(seed):
    images = np.random.default_rng([seed, 2000]).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    images[1] = 7
    return images


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_agrees_with_tensorflow(transform):
    golden = json.loads(GOLDEN.read_text())
    images = golden_images(golden["seed"])
    result = transform(standardize)(images, *transform(statistics)(images))
    assert result.dtype == np.float32 and result.shape == images.shape
    for image, expected in zip(np.asarray(result), golden["outputs"], strict=True):
        flat = image.ravel()
        np.testing.assert_allclose(np.linalg.norm(flat), expected["l2"], rtol=1e-6)
        np.testing.assert_allclose(flat[:4], expected["first"], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(flat[-4:], expected["last"], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(flat.sum(), 0, atol=1e-3)  # the golden sums are rounding alone


def test_literal_values():
    images = np.array([[[0, 0], [0, 4]], [[9, 9], [9, 9]]], np.uint8)
    mean, scale = statistics(images)
    assert mean.dtype == scale.dtype == np.float32 and mean.shape == scale.shape == (2,)
    np.testing.assert_array_equal(mean, [1, 9])
    np.testing.assert_allclose(scale, [1 / np.sqrt(3), 2], rtol=1e-6)  # the second: 1 / (1 / sqrt(4))
    expected = [[[-1, -1], [-1, 3]] / np.sqrt(3), np.zeros((2, 2))]
    np.testing.assert_allclose(standardize(images, mean, scale), expected, rtol=1e-6)


def test_one_off_image_keeps_its_pixel():
    # One pixel of 784 that differs by 1: the standard deviation is just below the floor of 1 / sqrt(784).
    image = np.full((1, 28, 28, 1), 200, np.uint8)
    image[0, 3, 4, 0] = 201
    mean, scale = statistics(image)
    np.testing.assert_allclose(scale, [28], rtol=1e-6)
    np.testing.assert_allclose(standardize(image, mean, scale)[0, 3, 4, 0], 28 * (1 - 1 / 784), rtol=1e-3)


def test_gathered_rows_equal_the_whole():
    images = golden_images(1)
    mean, scale = statistics(images)
    rows = np.array([2, 0])
    whole = standardize(images, mean, scale)
    np.testing.assert_array_equal(standardize(images[rows], mean[rows], scale[rows]), whole[rows])


def test_vmap_over_seeds():
    images = golden_images(2)
    mean, scale = statistics(images)
    rows = np.array([[0, 1], [2, 2]])
    result = jax.vmap(standardize)(images[rows], mean[rows], scale[rows])
    np.testing.assert_allclose(result, standardize(images, mean, scale)[rows], rtol=1e-6)
