import json
import sys

import numpy as np
import pytest
from safetensors.numpy import load

from ssm import data
from ssm.errors import UserError
from ssm.export.interop import to_onnx, to_safetensors
from ssm.models.graph import Architecture
from tests.support.artifact_nets import made_up

PICTURES = {"inputs": (12, 12, 3), "classes": 10, "width": 0.25}
NETS = {
    "fcn": Architecture(model="fcn", inputs=(28, 28, 1), classes=10),
    "conv2": Architecture(model="conv2", **PICTURES),
    "stem": Architecture(model="resnet20", batch_norm="frozen", stem_affine=True, **PICTURES),
    "affine": Architecture(model="resnet20", batch_norm="affine", **PICTURES),
}


@pytest.fixture(scope="module")
def made():
    return lambda name: made_up(NETS[name], density=0.03)


def onnx_logits(model, images):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["logits"], {"images": images.astype(np.float32)})[0]


@pytest.mark.parametrize("compacted", [False, True])
def test_onnxruntime_agrees_on_a_thousand_real_digits(made, compacted):
    images = data.load("mnist5k").test_images[:1000]
    assert len(images) == 1000
    artifact = made("fcn")
    wanted = artifact.logits(images)
    found = onnx_logits(to_onnx(artifact, compacted=compacted), images)
    np.testing.assert_allclose(found, wanted, atol=3e-6 * np.abs(wanted).max())
    assert (found.argmax(1) == wanted.argmax(1)).all()


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("name", ["conv2", "stem", "affine"])
def test_onnxruntime_agrees_on_pictures(made, name, compacted):
    artifact = made(name)
    images = np.random.default_rng(0).integers(0, 256, (5, 12, 12, 3), np.uint8)
    wanted = artifact.full_runtime().logits(images)
    found = onnx_logits(to_onnx(artifact, compacted=compacted), images)
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())


def test_standardised_images_are_taken_when_asked_for(made):
    artifact = made("conv2")
    images = np.random.default_rng(0).normal(size=(3, 12, 12, 3)).astype(np.float32)
    wanted = artifact.runtime()(images)
    found = onnx_logits(to_onnx(artifact, standardizes=False), images)
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())


def test_a_compacted_model_is_smaller(made):
    artifact = made("fcn")
    assert len(to_onnx(artifact, compacted=True)) < len(to_onnx(artifact))


def test_safetensors_hold_every_value(made):
    from safetensors import deserialize

    artifact = made("affine")
    file = to_safetensors(artifact)
    tensors = load(file)
    assert len(deserialize(file)) == len(artifact.layers) + len(artifact.values)
    for name, kernel in artifact.to_dense().items():
        np.testing.assert_array_equal(tensors[f"{name}/kernel"], kernel)
    for name, value in artifact.values.items():
        np.testing.assert_array_equal(tensors[name], value)
    header = json.loads(file[8 : 8 + int.from_bytes(file[:8], "little")])["__metadata__"]
    assert header["seed"] == "0" and json.loads(header["class_names"])[1] == "class 1"


def test_a_missing_package_is_said(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match="pip install"):
        to_onnx(made("fcn"))
