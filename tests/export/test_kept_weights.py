"""Nets of the related work's methods: made of the weights that a run kept."""

import shutil

import numpy as np
import pytest

import ssm
from ssm.errors import UserError
from ssm.export.conversion import check_known, from_run, frozen_of_run
from ssm.export.serialization import to_bytes
from ssm.files import read_json, write_json
from ssm.runs.example_file import example_path
from ssm.runs.initial import initial_masks
from ssm.runs.reader import read_finished
from ssm.runs.weight_file import load_weights, save_weights, weight_path
from ssm.viz import render
from tests.support.runs import literature, run_config

pytestmark = pytest.mark.filterwarnings("ignore:.*keeps no outputs of its nets")
KINDS = {"edge_popup": "one", "ttq": "two", "rigl": "own", "mpt": "one", "lr_net": "one"}
SLOW = ("edge_popup", "rigl", "lr_net", "ttq")


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in KINDS]
)
def trained(request, tmp_path_factory, digits):
    folder = run_config(literature(digits, request.param), digits, [0], out=tmp_path_factory.mktemp("r")).folder
    return request.param, folder


@pytest.fixture
def folder(trained, tmp_path):
    return shutil.copytree(trained[1], tmp_path / trained[1].name)


def test_a_net_has_the_weights_of_the_run_bit_for_bit(trained, digits, tmp_path):
    method, folder = trained
    run = read_finished(folder)
    size = from_run(run, 0).save(tmp_path / "net.ssm")
    net = ssm.load(tmp_path / "net.ssm")
    weights, kinds = load_weights(weight_path(folder, 0)), set()
    for name, kernel in net.to_dense().items():
        assert kernel.tobytes() == weights[name].tobytes()
        layer = net.layers[name]
        kinds.add("own" if layer.own is not None else "two" if isinstance(layer.constant, tuple) else "one")
    assert kinds - {"one"} == {KINDS[method]} - {"one"}  # of a small layer few weights remain, perhaps of one sign
    assert net.recipe is None and net.about["method"] == method
    logits = net.logits(digits.test_images)
    if method == "lr_net":  # it tests draws
        assert "test_accuracy" not in net.about and 0 <= net.about["test_accuracy_of_draws"] <= 1
    else:
        hits = logits.argmax(1) == digits.test_labels
        assert net.about["test_accuracy"] == pytest.approx(hits.mean())
    np.testing.assert_allclose(net.runtime().logits(digits.test_images), logits, atol=3e-6 * np.abs(logits).max())
    assert (net.own_values > 0) == (KINDS[method] == "own") and size < 5000 + 5 * net.own_values
    assert ("checked_samples" in net.about) == example_path(folder, 0).exists()


def test_weights_of_another_seed_or_none_are_refused(folder):
    weights = load_weights(weight_path(folder, 0))
    save_weights(weight_path(folder, 0), {name: values[::-1] for name, values in weights.items()})
    with pytest.raises(UserError, match=r"seed-0000\.npz does not fit the masks of seed 0"):
        from_run(read_finished(folder), 0)
    weight_path(folder, 0).unlink()
    with pytest.raises(UserError, match="keeps no weights of seed 0"):
        from_run(read_finished(folder), 0)


def test_what_the_masks_are_on(trained):
    run = read_finished(trained[1])
    masks, weights, frozen = run.masks([0]), run.weights(0), frozen_of_run(run, 0)
    for layer, kernel in frozen.items():
        np.testing.assert_array_equal(masks[layer][0] * kernel, weights[layer])
    assert initial_masks(run, [0]).keys() == masks.keys()


def test_its_page_names_the_method_and_says_what_its_weights_are(trained):
    method, folder = trained
    run = read_finished(folder)
    text = render(run, artifact=len(to_bytes(from_run(run, 0))))
    title = {"edge_popup": "edge-popup", "ttq": "TTQ", "rigl": "RigL", "mpt": "MPT-1/32", "lr_net": "LR-Net"}[method]
    assert f"<h1>FCN, {title}, " in text
    assert "Weights that are not 0: " in text and "bytes as a file." in text
    assert "inverted" not in text and ("negative, −1 (%)" in text) == (method in ("ttq", "lr_net"))  # noqa: RUF001
    assert ("Two bits and entropy are of the mask alone" in text) == (method == "rigl")
    assert "bytes in the run&#39;s folder." in render(run)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"activation": "relu"}, "--activation=relu"),
        ({"batch_norm": "statistics"}, "--batch-norm=statistics"),
        ({"model": "vgg_small"}, "--model=vgg_small"),
        ({"method_options": "drop=0.3,exempt=Dense_0"}, "with a mask of every layer; this is --model=fcn"),
        ({"method_options": "exempt=Dense_0"}, "--rigl.exempt=Dense_0"),
        ({"method": "own", "learner": "mine:learner"}, "a learner of your own"),
    ],
)
def test_a_net_that_the_format_does_not_know_is_one_message(changes, said, tmp_path):
    config = {"model": "fcn", "method": "rigl", "activation": "elu", "batch_norm": "none", "init": "elu"} | changes
    config |= {"preset": "published", "dataset": "mnist", "epochs": 1}
    figures = dict.fromkeys(("mean", "q05", "q95", "std"), 0.5) | {"values": {"0": 0.5}}
    summary = {**config, "source": "", "weights": 1, "failed": [], "runs": 1, "test_accuracy": figures}
    summary |= {"remaining_weights": figures, "seconds_per_epoch_and_seed": {"median": 1.0}}
    write_json(tmp_path / "config.json", config)
    write_json(tmp_path / "summary.json", summary)
    assert read_json(tmp_path / "config.json")["method"] == config["method"]
    with pytest.raises(UserError) as caught:
        check_known(read_finished(tmp_path))
    assert said in str(caught.value) and str(tmp_path) in str(caught.value)
    if "learner" not in changes:
        assert "weights/" in str(caught.value)
