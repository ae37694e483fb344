"""Nets made of a run are those that were trained, or refused."""

import shutil
import warnings

import numpy as np
import pytest

from ssm.errors import UserError
from ssm.export import conversion, flax_module
from ssm.export.conversion import TOLERANCE, from_run, frozen_of_run
from ssm.export.serialization import to_bytes
from ssm.files import read_json, write_json
from ssm.runs.example_file import example_path, load_examples, save_examples
from ssm.runs.folder import mask_path
from ssm.runs.mask_file import load_masks, save_masks
from ssm.runs.reader import read_finished
from tests.support.runs import run_config, short
from tests.support.settings import OTHER, under


@pytest.fixture(scope="module")
def trained(tmp_path_factory, digits):
    return run_config(
        short(digits, epochs=2, learning_rate=0.02), digits, [0, 1], out=tmp_path_factory.mktemp("r")
    ).folder


@pytest.fixture
def folder(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / trained.name)


def test_a_net_is_checked_by_the_outputs_that_the_run_kept(trained, digits):
    run = read_finished(trained)
    inputs, outputs = load_examples(example_path(trained, 1))
    np.testing.assert_array_equal(inputs, digits.test_images[:8])
    made = from_run(run, 1)
    assert made.about["checked_samples"] == 8
    np.testing.assert_allclose(made.logits(inputs), outputs, rtol=1e-5, atol=1e-5)


def test_a_net_is_the_same_under_other_settings_of_jax(trained):
    run = read_finished(trained)
    wanted = to_bytes(from_run(run, 0))
    flax_module._initialise.cache_clear()
    with under(OTHER):
        made = from_run(run, 0)
        assert to_bytes(made) == wanted
        logits = made.logits(load_examples(example_path(trained, 0))[0])
    assert logits.dtype == np.float32
    np.testing.assert_array_equal(logits, from_run(run, 0).logits(load_examples(example_path(trained, 0))[0]))


@pytest.mark.parametrize("precision", ["tf32", "tf32x3"])
def test_a_net_of_a_run_in_tf32_is_one_in_float32(folder, precision):
    write_json(folder / "config.json", read_json(folder / "config.json") | {"precision": precision})
    made = from_run(read_finished(folder), 1)
    assert made.precision == "float32" and made.about["checked_samples"] == 8


def test_other_frozen_weights_are_refused(folder):
    summary = read_json(folder / "summary.json")
    summary["frozen"]["1"] = "0" * 16
    write_json(folder / "summary.json", summary)
    run = read_finished(folder)
    for make in (from_run, frozen_of_run):
        with pytest.raises(UserError, match=r"the frozen weights that seed 1 gives here .* are not those .* train the"):
            make(run, 1)
    from_run(run, 0)


@pytest.mark.parametrize("hashed", [True, False], ids=["by the hash", "by the outputs"])
def test_a_flip_of_signs_is_refused(folder, monkeypatch, hashed):
    drawn = conversion.initial_frozen

    def flipped(*where):
        return {name: kernel * (-1 if name == "Dense_1" else 1) for name, kernel in drawn(*where).items()}

    monkeypatch.setattr(conversion, "initial_frozen", flipped)
    if not hashed:
        monkeypatch.setattr(conversion, "check_frozen", lambda *where: True)
    with pytest.raises(UserError, match="frozen weights" if hashed else "is not the one that was trained"):
        from_run(read_finished(folder), 0)


def test_outputs_that_are_not_the_nets_are_refused(folder):
    path = example_path(folder, 0)
    inputs, outputs = load_examples(path)
    save_examples(path, {"inputs": inputs, "outputs": outputs + 0.5 * TOLERANCE["float32"] * np.abs(outputs).max()})
    from_run(read_finished(folder), 0)
    save_examples(path, {"inputs": inputs, "outputs": outputs + 2 * TOLERANCE["float32"] * np.abs(outputs).max()})
    with pytest.raises(
        UserError, match=r"not the one that was trained: its outputs of 8 test samples are off by up to"
    ):
        from_run(read_finished(folder), 0)
    save_examples(path, {"inputs": inputs, "outputs": np.full_like(outputs, np.nan)})
    with pytest.raises(UserError, match="not the one that was trained"):
        from_run(read_finished(folder), 0)


def test_masks_of_another_seed_are_refused(folder):
    masks = load_masks(mask_path(folder, 0))
    save_masks(mask_path(folder, 0), {name: mask[::-1] for name, mask in masks.items()})  # of the same density
    with pytest.raises(UserError, match="not the one that was trained"):
        from_run(read_finished(folder), 0)


def test_examples_that_are_not_there_or_no_images_are_refused(folder):
    path = example_path(folder, 0)
    inputs, outputs = load_examples(path)
    save_examples(path, {"inputs": inputs.astype(np.float32), "outputs": outputs})
    with pytest.raises(UserError, match="inputs float32"):
        from_run(read_finished(folder), 0)
    path.unlink()
    with pytest.raises(UserError, match=r"seed-0000.npz does not exist"):
        from_run(read_finished(folder), 0)


def test_a_run_of_an_older_version_says_once_that_it_cannot_be_checked(folder):
    summary = read_json(folder / "summary.json")
    del summary["frozen"]
    write_json(folder / "summary.json", summary)
    shutil.rmtree(folder / "examples")
    run = read_finished(folder)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        made = [from_run(run, seed) for seed in (0, 1, 0)]
    assert all("checked_samples" not in one.about for one in made)
    assert [str(one.message) for one in said] == [
        f"{folder} is of an older version and keeps no hash of its frozen weights: they are drawn again from the seed, "
        "unchecked"
    ]
