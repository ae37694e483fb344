"""Winograd's transforms by hand, and what they keep exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ssm.ops import convolution, matmul, winograd
from ssm.ops.convolution import NUMBERS, conv_general_dilated
from tests.support.quick import quick

# Lavin and Gray, section 4.1: F(2 x 2, 3 x 3).
INPUT = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], float)  # B'
KERNEL = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])  # G
OUTPUT = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], float)  # A'

DIGITS = np.arange(1.0, 17).reshape(1, 4, 4, 1)


def draw(*shapes):
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]


def convolve(x, w):
    x, w = jnp.asarray(x, jnp.float32), jnp.asarray(w, jnp.float32)
    return conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NUMBERS, form="winograd")


def rounded(x):
    return np.asarray(jnp.asarray(x, jnp.float32).astype(jnp.bfloat16), np.float64)


def tiles(x):
    """Return the 4 x 4 inputs of every 2 x 2 outputs, [b, h/2, w/2, 4, 4, i]."""
    padded = np.pad(np.asarray(x, np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = x.shape[1] // 2, x.shape[2] // 2
    cut = [[padded[:, 2 * r : 2 * r + 4, 2 * c : 2 * c + 4] for c in range(columns)] for r in range(rows)]
    return np.stack([np.stack(row, axis=1) for row in cut], axis=1)


def test_a_kernel_of_one_in_the_centre_returns_the_image():
    centre = np.zeros((3, 3, 1, 1))
    centre[1, 1] = 1
    np.testing.assert_array_equal(convolve(DIGITS, centre), DIGITS)


def test_a_kernel_of_one_in_a_corner_moves_the_image():
    corner = np.zeros((3, 3, 1, 1))
    corner[0, 0] = 1
    expected = [[0, 0, 0, 0], [0, 1, 2, 3], [0, 5, 6, 7], [0, 9, 10, 11]]
    np.testing.assert_array_equal(convolve(DIGITS, corner)[0, :, :, 0], expected)


def test_a_kernel_of_ones_sums_neighbourhoods():
    found = convolve(DIGITS, np.ones((3, 3, 1, 1)))[0, :, :, 0]
    np.testing.assert_array_equal(found, [[14, 24, 30, 22], [33, 54, 63, 45], [57, 90, 99, 69], [46, 72, 78, 54]])


def test_one_tile_by_hand():
    # All nine products but those with the four pixels are with zeros.
    x, w = np.array([[1.0, 2], [3, 4]]).reshape(1, 2, 2, 1), np.arange(1.0, 10).reshape(3, 3, 1, 1)
    found = convolve(x, w)[0, :, :, 0]
    np.testing.assert_array_equal(found, [[5 + 12 + 24 + 36, 4 + 10 + 21 + 32], [2 + 6 + 15 + 24, 1 + 4 + 12 + 20]])


@pytest.mark.slow
def test_its_gradients_by_hand():
    # One output is asked for, the first; its kernel meets the image shifted by one.
    x, w = np.array([[1.0, 2], [3, 4]]).reshape(1, 2, 2, 1), np.arange(1.0, 10).reshape(3, 3, 1, 1)
    to_x, to_w = jax.grad(lambda x, w: convolve(x, w)[0, 0, 0, 0], argnums=(0, 1))(x, w)
    np.testing.assert_array_equal(to_x[0, :, :, 0], [[5, 6], [8, 9]])
    np.testing.assert_array_equal(to_w[:, :, 0, 0], [[0, 0, 0], [0, 1, 2], [0, 3, 4]])


def test_the_transforms_are_the_papers_matrices():
    x, w, m = draw((2, 4, 6, 3), (3, 3, 3, 5), (16, 12, 3))
    expected = np.einsum("pr,qs,rsio->pqio", KERNEL, KERNEL, np.asarray(w, np.float64))
    np.testing.assert_allclose(winograd.transform_kernel(w), expected.reshape(16, 3, 5), rtol=1e-5, atol=1e-6)
    expected = np.einsum("pr,qs,bhwrsi->pqbhwi", INPUT, INPUT, tiles(x))
    np.testing.assert_allclose(winograd.transform_input(x), expected.reshape(16, 12, 3), rtol=1e-5, atol=1e-6)
    expected = np.einsum("up,vq,pqbhwo->bhuwvo", OUTPUT, OUTPUT, np.asarray(m, np.float64).reshape(4, 4, 2, 2, 3, 3))
    np.testing.assert_allclose(winograd.transform_output(m, x.shape), expected.reshape(x.shape), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "back", "shape"),
    quick(
        [
            (winograd.transform_input, lambda v: winograd.untransform_input(v, (2, 6, 4, 3)), (2, 6, 4, 3)),
            (lambda m: winograd.transform_output(m, (2, 6, 4, 3)), winograd.transform_cotangent, (16, 12, 3)),
            (winograd.transform_kernel, winograd.untransform_kernel, (3, 3, 4, 5)),
        ]
    ),
    ids=["input", "output", "kernel"],
)
def test_each_transform_has_its_transpose(function, back, shape):
    given = jax.ShapeDtypeStruct(shape, jnp.float32)
    (cotangent,) = draw(jax.eval_shape(function, given).shape)
    (expected,) = jax.linear_transpose(function, given)(cotangent)
    np.testing.assert_allclose(back(cotangent), expected, rtol=1e-5, atol=1e-5)


@settings(deadline=None)
@given(arrays(np.float32, (3, 3, 4, 2), elements=st.sampled_from([-1.0, 0.0, 1.0])))
def test_a_ternary_kernels_transform_is_exact_in_bfloat16(w):
    found = winograd.transform_kernel(jnp.asarray(w))
    np.testing.assert_array_equal(found, np.einsum("pr,qs,rsio->pqio", KERNEL, KERNEL, w).reshape(16, 4, 2))
    np.testing.assert_array_equal(found, rounded(found))


@pytest.mark.slow
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("block", [1, 256])
def test_bfloat16_rounds_the_transforms_and_sums_in_float32(monkeypatch, native, block):
    for module in (convolution, matmul):
        monkeypatch.setattr(module, "native_bfloat16", lambda: native)
    monkeypatch.setattr(convolution, "TILES", block)
    x, w, g = draw((3, 4, 6, 8), (3, 3, 8, 5), (3, 4, 6, 5))

    def layer(x, w):
        options = {"dimension_numbers": NUMBERS, "form": "winograd", "bfloat16": True}
        return conv_general_dilated(x, w, (1, 1), "SAME", **options)

    y, pull = jax.vjp(layer, x, w)
    d, u, q = (
        rounded(winograd.transform_input(x)),
        rounded(winograd.transform_kernel(w)),
        rounded(winograd.transform_cotangent(g)),
    )
    m = np.einsum("pti,pio->pto", d, u)
    expected = (
        winograd.transform_output(jnp.asarray(m, jnp.float32), y.shape),
        winograd.untransform_input(jnp.asarray(np.einsum("pto,pio->pti", q, u), jnp.float32), x.shape),
        winograd.untransform_kernel(jnp.asarray(np.einsum("pti,pto->pio", d, q), jnp.float32)),
    )
    for found, wanted in zip((y, *pull(g)), expected, strict=True):
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
