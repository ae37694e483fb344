import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ssm
from ssm.data import standardized
from ssm.errors import UserError
from ssm.export.images import raw_images
from ssm.export.runtime import standardize
from tests.support.artifacts import tiny
from tests.support.programs import ROOT

RAW = np.arange(12, dtype=np.uint8).reshape(3, 2, 2, 1)
WRONG = {
    "floats from 0 to 1": RAW / 255,
    "float32": RAW.astype(np.float32),
    "standardised": standardize(RAW),
    "int64": RAW.astype(np.int64),
    "no channels": RAW[..., 0],
    "another size": np.zeros((3, 2, 3, 1), np.uint8),
    "none": RAW[:0],
    "a list": [1.0],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_anything_but_raw_images_is_refused(wrong):
    net = tiny()
    for use in (net.logits, net.standardize, net.runtime().logits, net.runtime().probabilities):
        with pytest.raises(
            UserError, match=r"expected raw ones, uint8 \[n, height, width, channels\] of 2 x 2 x 1, with"
        ):
            use(WRONG[wrong])
    with pytest.raises(UserError, match="images are float32"):
        jax.jit(net.logits)(jnp.ones((3, 2, 2, 1)))


def test_floats_are_told_where_they_belong():
    with pytest.raises(
        UserError, match=r"before they were divided .* net\.module\.apply\(net\.variables, x\) or net\.run"
    ):
        raw_images(RAW / 255, None)


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray, np.ndarray.tolist])
def test_any_array_of_bytes_will_do(kind):
    given = kind(RAW)
    if isinstance(given, list):
        given = [np.asarray(image, np.uint8) for image in given]
    np.testing.assert_array_equal(tiny().logits(given), tiny().logits(RAW))


def test_raw_images_are_refused_where_standardised_ones_belong():
    net = tiny()
    with pytest.raises(UserError, match=r"but the net takes standardised ones: ssm\.data\.standardized\(images\)"):
        net.module.apply(net.variables, RAW)
    for use in (net.runtime(), net.full_runtime().activations):
        for raw, said in ((RAW, "images are uint8"), (RAW.astype(np.float32), "images have no value below 0")):
            with pytest.raises(UserError, match=f"{said}.*standardised, of 2 x 2 x 1"):
                use(raw)
        use(np.zeros((1, 2, 2, 1), np.float32))  # a constant image, standardised
    np.testing.assert_allclose(standardized(RAW), net.standardize(RAW))


def test_every_way_to_the_logits_gives_a_trained_nets_accuracy():
    """Case 25: with raw images 70 % in place of 99 %, without a word."""
    net, digits = ssm.load(ROOT / "experiments" / "results" / "nets" / "fcn.ssm"), ssm.data.load("mnist5k")
    ways = {
        "module": net.module.apply(net.variables, net.standardize(digits.test_images)),
        "logits": net.logits(digits.test_images),
        "runtime": net.runtime()(np.asarray(net.standardize(digits.test_images))),
    }
    for logits in ways.values():
        assert (np.asarray(logits).argmax(1) == digits.test_labels).mean() == pytest.approx(0.99, abs=0.003)
