"""Every form of our convolution against XLA's own: values, both gradients, and epilogues."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jax.extend.core import subjaxprs

from ssm.ops import convolution, matmul
from ssm.ops.convolution import NUMBERS, block_size, conv_general_dilated
from ssm.ops.epilogue import ELU, IDENTITY, POOL_ELU
from tests.support.quick import quick

FORMS = ("auto", "xla", "im2col", "winograd")
EPILOGUES = {"identity": IDENTITY, "elu": ELU, "pool_elu": POOL_ELU}
ONE_TILE = 1  # then a block is one image, or few
NHWC = {"dimension_numbers": NUMBERS}

# Name: images, kernel, strides, padding, other options.
CASES = {
    "even": ((4, 8, 6, 3), (3, 3, 3, 5), (1, 1), "SAME", {}),
    "odd": ((4, 7, 5, 3), (3, 3, 3, 16), (1, 1), "SAME", {}),
    "odd_width": ((2, 6, 5, 16), (3, 3, 16, 16), (1, 1), "SAME", {}),
    "one_channel": ((2, 4, 4, 1), (3, 3, 1, 1), (1, 1), "SAME", {}),
    "from_one_to_sixteen": ((3, 4, 8, 1), (3, 3, 1, 16), (1, 1), "SAME", {}),
    "sixteen": ((3, 6, 4, 16), (3, 3, 16, 16), (1, 1), "SAME", {}),
    "two_by_two": ((5, 2, 2, 16), (3, 3, 16, 16), (1, 1), "SAME", {}),
    "one_pixel": ((5, 1, 1, 3), (3, 3, 3, 3), (1, 1), "SAME", {}),
    "padding_1": ((2, 4, 6, 3), (3, 3, 3, 4), (1, 1), ((1, 1), (1, 1)), {}),
    "padding_0": ((2, 4, 6, 3), (3, 3, 3, 4), (1, 1), "VALID", {}),
    "padding_uneven": ((2, 4, 6, 3), (3, 3, 3, 4), (1, 1), ((2, 0), (1, 1)), {}),
    "strided": ((2, 8, 6, 3), (3, 3, 3, 4), (2, 2), "SAME", {}),
    "strided_rows": ((2, 8, 6, 3), (3, 3, 3, 4), (2, 1), "SAME", {}),
    "pointwise": ((2, 6, 5, 3), (1, 1, 3, 16), (1, 1), "SAME", {}),
    "pointwise_strided": ((2, 6, 5, 3), (1, 1, 3, 4), (2, 2), "SAME", {}),
    "pointwise_strided_rows": ((2, 5, 6, 3), (1, 1, 3, 4), (2, 1), "VALID", {}),
    "pointwise_padded": ((2, 4, 4, 3), (1, 1, 3, 4), (1, 1), ((1, 1), (1, 0)), {}),
    "five": ((2, 8, 6, 3), (5, 5, 3, 4), (1, 1), "SAME", {}),
    "three_by_one": ((2, 8, 6, 3), (3, 1, 3, 4), (1, 1), "SAME", {}),
    "groups": ((2, 6, 6, 16), (3, 3, 8, 4), (1, 1), "SAME", {"feature_group_count": 2}),
    "pointwise_groups": ((2, 6, 6, 4), (1, 1, 1, 4), (1, 1), "SAME", {"feature_group_count": 4}),
    "dilated_kernel": ((2, 8, 6, 3), (3, 3, 3, 4), (1, 1), "SAME", {"rhs_dilation": (2, 2)}),
    "dilated_images": ((2, 4, 6, 3), (3, 3, 3, 4), (1, 1), ((1, 1), (1, 1)), {"lhs_dilation": (2, 1)}),
    "dilation_1": ((2, 4, 6, 3), (3, 3, 3, 4), (1, 1), "SAME", {"rhs_dilation": (1, 1), "lhs_dilation": (1, 1)}),
    "channels_first": ((2, 3, 6, 4), (4, 3, 3, 3), (1, 1), "SAME", {"dimension_numbers": ("NCHW", "OIHW", "NCHW")}),
    "no_numbers": ((2, 3, 6, 4), (4, 3, 3, 3), (1, 1), "SAME", {"dimension_numbers": None}),
}


@pytest.fixture(scope="module", autouse=True)
def _compiled_quickly():
    """A third of the time to compile; tests/models/test_golden.py has the convolutions as training compiles them."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def draw(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]


def close(found, expected, rtol=1e-5):
    """Equal up to a part `rtol` of the largest element."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=0, atol=rtol * np.abs(other).max())


def all_of(function, x, w, jit=jax.jit):
    """Return a function's value, and its gradients by both arguments for a random cotangent."""

    def both(x, w):
        y, pull = jax.vjp(function, x, w)
        return y, pull(draw(y.shape, seed=1)[0])

    return jit(both)(x, w)


def same_size(x, w, *, epilogue=IDENTITY, **options):
    """Convolve as the 3 x 3 layers of the nets do."""
    return conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NUMBERS, epilogue=epilogue, **options)


def xlas(x, w, epilogue=IDENTITY):
    return epilogue.function(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NUMBERS))


@pytest.mark.parametrize("case", quick(CASES, 8))
def test_every_form_is_xlas_convolution(case):
    images, kernel, strides, padding, options = CASES[case]
    x, w = draw(images, kernel)
    options = NHWC | options
    expected = all_of(lambda x, w: lax.conv_general_dilated(x, w, strides, padding, **options), x, w)
    for form in FORMS:
        found = all_of(lambda x, w, form=form: conv_general_dilated(x, w, strides, padding, form=form, **options), x, w)
        close(found, expected)


@pytest.mark.parametrize("epilogue", quick(EPILOGUES))
@pytest.mark.parametrize("size", [(6, 4), (5, 7)], ids=["even", "odd"])
@pytest.mark.parametrize("tiles", quick([ONE_TILE, 12, 256], 2))
def test_the_epilogue_is_applied_in_blocks_of_any_size(monkeypatch, epilogue, size, tiles):
    monkeypatch.setattr(convolution, "TILES", tiles)
    x, w = draw((6, *size, 5), (3, 3, 5, 4))
    expected = all_of(partial(xlas, epilogue=EPILOGUES[epilogue]), x, w)
    for form in ("im2col", "winograd"):
        close(all_of(partial(same_size, form=form, epilogue=EPILOGUES[epilogue]), x, w), expected)


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_the_epilogue_of_a_convolution_that_is_xlas_or_pointwise(epilogue):
    x, w, v = draw((2, 6, 4, 3), (5, 5, 3, 4), (1, 1, 3, 4))
    for kernel in (w, v):
        close(
            all_of(partial(same_size, epilogue=EPILOGUES[epilogue]), x, kernel),
            all_of(partial(xlas, epilogue=EPILOGUES[epilogue]), x, kernel),
        )


def test_blocks_are_the_largest_part_of_a_batch_that_has_few_tiles(monkeypatch):
    monkeypatch.setattr(convolution, "TILES", 256)
    assert [block_size(128, side, side) for side in (32, 16, 8, 4)] == [1, 4, 16, 64]
    assert [block_size(100, side, side) for side in (32, 16, 8, 4)] == [1, 4, 10, 50]
    assert block_size(127, 8, 8) == 1 and block_size(12, 8, 8) == 12 and block_size(3, 64, 64) == 1


@pytest.mark.parametrize("form", quick(FORMS))
def test_eager_is_jitted(monkeypatch, form):
    monkeypatch.setattr(convolution, "TILES", ONE_TILE)
    x, w = draw((3, 4, 4, 3), (3, 3, 3, 4))
    function = partial(same_size, form=form, epilogue=POOL_ELU)
    close(all_of(function, x, w, jit=lambda f: f), all_of(function, x, w))


def products_in(jaxpr):
    """Count the matrix products of a program, those of its inner programs included."""
    inner = sum(products_in(part) for part in subjaxprs(jaxpr))
    return inner + sum(equation.primitive.name == "dot_general" for equation in jaxpr.eqns)


@pytest.mark.parametrize("form", ["im2col", "winograd"])
@pytest.mark.parametrize("tiles", quick([ONE_TILE, 256]))
@pytest.mark.parametrize("inside", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_nobody_pays_for_a_cotangent_that_is_not_asked_for(monkeypatch, form, tiles, inside):
    monkeypatch.setattr(convolution, "TILES", tiles)
    x, w = draw((3, 4, 4, 3), (3, 3, 3, 4))

    def loss(x, w):
        return jnp.sum(inside(partial(same_size, form=form, epilogue=ELU))(x, w) ** 2)

    both = jax.grad(loss, argnums=(0, 1))
    one = jax.grad(loss, argnums=1)
    assert products_in(jax.make_jaxpr(both)(x, w).jaxpr) == 3
    assert products_in(jax.make_jaxpr(one)(x, w).jaxpr) == 2
    close(jax.jit(one)(x, w), jax.jit(both)(x, w)[1], rtol=1e-6)


def test_nobody_pays_for_it_inside_a_scan_over_batches():
    x, w = draw((2, 3, 4, 4, 3), (3, 3, 3, 4))

    def step(w, x):
        return w - jax.grad(lambda w: jnp.sum(same_size(x, w) ** 2))(w), None

    assert products_in(jax.make_jaxpr(lambda w, x: lax.scan(step, w, x))(w, x).jaxpr) == 2


@pytest.mark.parametrize("form", quick(FORMS, 2))
@pytest.mark.parametrize("shared", [True, False], ids=["one_batch", "own_batches"])
def test_vectorised_seeds_are_each_seed_alone(monkeypatch, form, shared):
    monkeypatch.setattr(convolution, "TILES", ONE_TILE)
    x, w = draw((3, 2, 4, 6, 3), (3, 3, 3, 3, 16))
    function = partial(same_size, form=form, epilogue=POOL_ELU)
    one = jax.jit(lambda x, w: all_of(function, x, w, jit=lambda f: f))
    found = jax.jit(jax.vmap(one, in_axes=(None if shared else 0, 0)))(x[0] if shared else x, w)
    for seed in range(3):
        close(jax.tree.map(lambda leaf, seed=seed: leaf[seed], found), one(x[0 if shared else seed], w[seed]))


@pytest.mark.parametrize("form", FORMS)
def test_training_steps_in_a_scan_are_those_outside(monkeypatch, form):
    monkeypatch.setattr(convolution, "TILES", ONE_TILE)
    x, w = draw((3, 2, 4, 4, 16), (3, 3, 16, 16))

    def step(w, x, function):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean(function(x, w) ** 2))(w)
        return w - 0.1 * gradient, loss

    found = jax.jit(lambda w, x: lax.scan(partial(step, function=partial(same_size, form=form, epilogue=ELU)), w, x))(
        w, x
    )
    losses = []
    for batch in x:
        w, loss = step(w, batch, partial(xlas, epilogue=ELU))
        losses.append(loss)
    close(found, (w, jnp.stack(losses)))


small = st.integers(1, 5)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    batch=small,
    height=st.integers(1, 8),
    width=st.integers(1, 8),
    channels=st.tuples(small, small),
    form=st.sampled_from(FORMS),
    epilogue=st.sampled_from(["identity", "elu"]),
    tiles=st.integers(1, 20),
    seed=st.integers(0, 1000),
)
def test_whole_numbers_are_convolved_exactly(batch, height, width, channels, form, epilogue, tiles, seed):
    """Winograd's transforms of small whole numbers are exact, too, and so is every gradient without an epilogue."""
    rng = np.random.default_rng(seed)
    shapes = (batch, height, width, channels[0]), (3, 3, *channels), (batch, height, width, channels[1])
    x, w, g = (jnp.asarray(rng.integers(-3, 4, shape), jnp.float32) for shape in shapes)

    def both(function):
        def run(x, w, g):
            y, pull = jax.vjp(function, x, w)
            return y, pull(g)

        return jax.jit(run)(x, w, g)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "TILES", tiles)
        found = both(partial(same_size, form=form, epilogue=EPILOGUES[epilogue]))
    expected = both(partial(xlas, epilogue=EPILOGUES[epilogue]))
    if epilogue == "identity":
        chex.assert_trees_all_equal(found, expected)
    else:
        chex.assert_trees_all_close(found, expected, rtol=1e-5, atol=1e-4)


# Products of bfloat16


@pytest.fixture(params=[False, True], ids=["emulated", "native"])
def native(request, monkeypatch):
    for module in (convolution, matmul):
        monkeypatch.setattr(module, "native_bfloat16", lambda: request.param)


def rounded(x):
    return x.astype(jnp.bfloat16).astype(jnp.float32)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("window", [3, 1, 5])
def test_bfloat16_operands_are_rounded_and_sums_are_float32(form, window):
    x, w = draw((3, 4, 6, 9), (window, window, 9, 5))
    found = jax.jit(partial(same_size, form="im2col" if form == "winograd" else form, bfloat16=True))(x, w)
    close(found, xlas(rounded(x), rounded(w)))


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("window", quick([3, 1]))
@pytest.mark.parametrize("tiles", [ONE_TILE, 256])
def test_bfloat16_gradients_are_products_of_rounded_operands(monkeypatch, window, tiles):
    monkeypatch.setattr(convolution, "TILES", tiles)
    x, w, g = draw((3, 4, 6, 9), (window, window, 9, 5), (3, 4, 6, 5))
    _, pull = jax.vjp(partial(same_size, form="im2col", bfloat16=True), x, w)
    _, pull_rounded = jax.vjp(xlas, rounded(x), rounded(w))
    close(pull(g), pull_rounded(rounded(g)))


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize(
    ("form", "window", "strides"),
    quick(
        [("xla", 3, (1, 1)), ("auto", 3, (2, 2)), ("im2col", 3, (1, 1)), ("auto", 1, (2, 2)), ("winograd", 3, (1, 1))],
        4,
    ),
)
def test_what_bfloat16_does_to_outputs_and_gradients(form, window, strides):
    """As the table of docs/speed.md and --help say."""
    x, w = draw((2, 4, 6, 16), (window, window, 16, 16))
    convolve = partial(conv_general_dilated, form=form, bfloat16=True, **NHWC)
    y, pull = jax.vjp(lambda x, w: convolve(x, w, strides, "SAME"), x, w)
    found = [bool((value == rounded(value)).all()) for value in (y, *pull(draw(y.shape)[0]))]
    of_xla = form == "xla" or (window == 3 and strides == (2, 2))
    assert y.dtype == jnp.float32
    assert found == [of_xla and convolution.native_bfloat16(), of_xla, of_xla]


@pytest.mark.parametrize("form", ["auto", "im2col", "winograd"])
def test_bfloat16_differs_from_float32_by_its_rounding(form):
    x, w = draw((3, 4, 6, 16), (3, 3, 16, 16))
    found, expected = (all_of(partial(same_size, form=form, bfloat16=on), x, w) for on in (True, False))
    close(found, expected, rtol=2**-6)
    assert all(np.any(one != other) for one, other in zip(*map(jax.tree.leaves, (found, expected)), strict=True))
