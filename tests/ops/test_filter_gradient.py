import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ssm.ops import convolution
from ssm.ops.filter_gradient import NUMBERS, convolve

SEEDS = 3
CASES = {
    "3x3": ((4, 5), (3, 3), (1, 1), "SAME"),
    "strided": ((6, 7), (3, 3), (2, 2), "SAME"),
    "1x1, strided": ((6, 7), (1, 1), (2, 2), "VALID"),
    "no square": ((6, 8), (5, 2), (2, 3), ((2, 0), (0, 1))),
}
SLOW = ("3x3", "no square")  # with kernels and images of each seed; others below share what takes long


def plain(x, w, strides, padding):
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=NUMBERS)


def gradients(convolve, case, axes, dtype=jnp.float32):
    """Gradients for kernel and images of seeds that have their own kernels and images, or share what has no axis."""
    sides, window, strides, padding = CASES[case]
    keys = jax.random.split(jax.random.key(0), 2)
    shapes = {"w": (*window, 5, 6), "x": (4, *sides, 5)}
    w, x = (
        jax.random.normal(key, shape if axis is None else (SEEDS, *shape), dtype)
        for key, shape, axis in zip(keys, shapes.values(), axes, strict=True)
    )
    one = jax.grad(lambda w, x: jnp.sum(jnp.sin(convolve(x, w, strides, padding)).astype(jnp.float32)), (0, 1))
    return jax.jit(jax.vmap(one, axes) if set(axes) != {None} else one)(w, x)


@pytest.mark.parametrize(
    ("case", "axes"),
    [
        *(pytest.param(case, (0, 0), marks=pytest.mark.slow if case in SLOW else []) for case in CASES),
        ("strided", (None, None)),
        ("3x3", (0, None)),
    ],
)
def test_gradients_are_those_of_jax(case, axes):
    expected, found = gradients(plain, case, axes), gradients(convolve, case, axes)
    for one, other in zip(expected, found, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)


@pytest.mark.slow
def test_bfloat16_stays_bfloat16():
    for one, other in zip(*(gradients(f, "strided", (0, 0), jnp.bfloat16) for f in (plain, convolve)), strict=True):
        assert one.dtype == other.dtype == jnp.bfloat16
        np.testing.assert_allclose(one.astype(np.float32), other.astype(np.float32), rtol=0.02, atol=0.02)


def test_the_gradients_of_many_seeds_are_grouped_by_batch(monkeypatch):
    """On a GPU alone, and where nothing is dilated or grouped already."""

    def grouped(**options):
        def loss(w, x):
            return jnp.sum(convolution.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NUMBERS, **options))

        w, x = jnp.ones((SEEDS, 3, 3, 4, 4)), jnp.ones((SEEDS, 2, 8, 8, 4))
        return f"batch_group_count={SEEDS}" in str(jax.make_jaxpr(jax.vmap(jax.grad(loss)))(w, x))

    assert not grouped(form="xla")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert grouped(form="xla") and grouped() and grouped(bfloat16=True)
    assert not grouped(rhs_dilation=(2, 2))
