import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import reproduce
from ssm.errors import UserError
from ssm.files import read_json, write_json
from ssm.runs.folder import mask_path
from ssm.runs.mask_file import load_masks, save_masks
from ssm.runs.reader import read_finished
from ssm.runs.reproduction import check_seed, compare, environment_differences
from ssm.runs.value_file import save_values, value_path
from ssm.runs.weight_file import save_weights, weight_path
from tests.support.made_runs import make_run
from tests.support.programs import ROOT, without_settings

TINY = (
    "--model=fcn",
    "--dataset=mnist5k",
    "--epochs=2",
    "--width=0.1",
    "--batch-size=500",
    "--seeds=2",
    "--validation=500",
)


def program(name, *arguments):
    command = [sys.executable, str(ROOT / "experiments" / name), *map(str, arguments)]
    own = without_settings() | {"PYTHONPATH": str(ROOT), "SSM_OFFLINE": "1", "COLUMNS": "100"}
    return subprocess.run(command, capture_output=True, text=True, env=own, timeout=300, check=False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    done = program("train.py", *TINY, f"--out={out}")
    assert done.returncode == 0, done.stderr
    (folder,) = out.iterdir()
    return folder


@pytest.fixture
def copied(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / trained.name)


@pytest.fixture(scope="module")
def again(trained, tmp_path_factory):
    """Seed 1, which was trained beside seed 0, alone."""
    out = tmp_path_factory.mktemp("again")
    return program("reproduce.py", trained, "--seed", 1, "--out", out), out / trained.name


@pytest.mark.slow
def test_a_seed_comes_out_the_same_bits(again, trained):
    done, folder = again
    assert done.returncode == 0, done.stderr
    same = "the same bits: test accuracy and remaining weights, masks, the figures of all epochs"
    assert re.search(rf"seed 1 of {trained.name}, trained again in \d+ s\n{same}\n", done.stdout)
    assert "program and machine: the same\n" in done.stdout and done.stdout.endswith(f"results: {folder}\n")
    assert read_finished(folder).seeds == [1]


@pytest.mark.slow
def test_a_mask_that_differs_is_reported_with_its_share(again, copied):
    path = mask_path(copied, 1)
    masks = load_masks(path)
    masks["Dense_1"] = np.where(
        np.arange(masks["Dense_1"].size).reshape(masks["Dense_1"].shape) < 30, 1, masks["Dense_1"]
    )
    changed = int(np.sum(load_masks(path)["Dense_1"] != masks["Dense_1"]))
    save_masks(path, masks)
    found = compare(read_finished(copied), read_finished(again[1]), 1)
    assert not found.same and found.masks is not None and found.epoch is None and found.epochs == 2
    assert {layer: one.count for layer, one in found.masks.items()} == {"Dense_0": 0, "Dense_1": changed, "Dense_2": 0}
    size, total = masks["Dense_1"].size, sum(mask.size for mask in masks.values())
    lines = reproduce.report(read_finished(copied), read_finished(again[1]), 1)
    assert lines[0] == "different"
    assert f"  Dense_1  {changed:,} of {size:,} differ ({changed / size:.4%})" in lines
    assert f"  all      {changed:,} of {total:,} differ ({changed / total:.4%})" in lines


@pytest.mark.slow
def test_figures_that_differ_are_reported_with_the_first_epoch(again, copied):
    summary = read_json(copied / "summary.json")
    now = summary["test_accuracy"]["values"]["1"]
    summary["test_accuracy"]["values"]["1"] = now - 0.01
    write_json(copied / "summary.json", summary)
    history = (copied / "history.csv").read_text().splitlines()
    (copied / "history.csv").write_text("\n".join([*history[:-1], re.sub(",[^,]*$", ",0.125", history[-1])]) + "\n")
    lines = reproduce.report(read_finished(copied), read_finished(again[1]), 1)
    assert lines[:2] == ["different", "figures differ from epoch 2 on"]
    assert f"test accuracy: {now - 0.01:.4%} then, {now:.4%} now (+1.0000 points)" in lines


@pytest.mark.slow
def test_what_differs_in_program_and_machine_is_said(again, copied):
    entries = read_json(copied / "environment.json")
    entries[0]["environment"] |= {"jax": "0.1.0", "git_commit": "abc"}
    del entries[0]["environment"]["matmul_precision"]
    write_json(copied / "environment.json", entries)
    lines = reproduce.report(read_finished(copied), read_finished(again[1]), 1)
    start = lines.index("program and machine:")
    assert [line.split(" then, ")[0] for line in lines[start + 1 :]] == [
        "  jax: 0.1.0",
        "  git_commit: abc",
        "  not recorded then: matmul_precision",
    ]
    (copied / "environment.json").unlink()
    lines = reproduce.report(read_finished(copied), read_finished(again[1]), 1)
    assert lines[-1] == "program and machine: not recorded then"
    assert environment_differences({"jax": "1", "data": "a"}, {"jax": "1", "data": "b"}) == []


@pytest.mark.slow
def test_other_data_is_refused(copied):
    entries = read_json(copied / "environment.json")
    entries[0]["environment"]["data"] = "0" * 16
    write_json(copied / "environment.json", entries)
    done = program("reproduce.py", copied, "--seed=0")
    assert done.returncode == 2 and "was trained on other data of the same name" in done.stderr
    assert "0" * 16 in done.stderr and "--data-dir" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_data_of_ones_own_are_found_in_their_folder(tmp_path):
    x, y = np.random.default_rng(0).random((40, 5), np.float32), np.arange(40) % 3
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    few = ("--epochs=1", "--width=0.1", "--batch-size=8", "--seeds=1")
    done = program("train.py", *few, f"--dataset=npz:{tmp_path / 'mine.npz'}", f"--out={tmp_path / 'runs'}")
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    again = ("reproduce.py", run, "--seed=0", f"--out={tmp_path / 'again'}")
    refused = program(*again)
    assert (
        refused.returncode == 2 and "npz:mine, are a file of your own: name its folder as --data-dir" in refused.stderr
    )
    done = program(*again, f"--data-dir={tmp_path}")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_folder_that_has_the_seed_already_is_refused(trained):
    done = program("reproduce.py", trained, "--seed=0", f"--out={trained.parent}")
    assert done.returncode == 2 and f"{trained} has seed 0 already; choose another --out" in done.stderr


@pytest.mark.slow
def test_a_seed_without_a_result_is_refused(copied):
    with pytest.raises(UserError, match=r"has no seed 7; it has 0 to 1"):
        check_seed(read_finished(copied), 7)
    summary = read_json(copied / "summary.json")
    summary["failed"] = [{"seed": 7, "epoch": 2, "reason": "no weight is left in Dense_0"}]
    write_json(copied / "summary.json", summary)
    with pytest.raises(UserError, match=r"seed 7 of .* was excluded in epoch 2 \(no weight is left in Dense_0\)"):
        check_seed(read_finished(copied), 7)
    done = program("reproduce.py", copied, "--seed=8")
    assert done.returncode == 2 and "has no seed 8" in done.stderr
    assert program("reproduce.py", copied / "masks").returncode == 2


@pytest.mark.slow
def test_without_masks_the_figures_alone_are_compared(again, copied):
    shutil.rmtree(copied / "masks")
    (copied / "history.csv").unlink()
    lines = reproduce.report(read_finished(copied), read_finished(again[1]), 1)
    assert lines[:2] == [
        "the same bits: test accuracy and remaining weights",
        "masks: not compared, the run keeps none of this seed",
    ]


def test_a_baseline_has_no_masks_to_compare(tmp_path):
    one, other = (read_finished(make_run(tmp_path / name, method="baseline")) for name in "ab")
    assert "masks: not compared, a baseline has none" in reproduce.report(one, other, 0)


def test_scales_and_offsets_are_compared(tmp_path):
    one, other = (read_finished(make_run(tmp_path / name, model="resnet20")) for name in "ab")
    assert compare(one, other, 0).values is None and compare(one, other, 0).same
    for run, value in ((one, 1), (other, 1 + 2**-23)):
        save_values(value_path(run.folder, 0), {"params/BatchNorm_0/scale": np.full(2, value, np.float32)})
    assert compare(one, one, 0).values is True
    assert compare(one, other, 0).values is False and not compare(one, other, 0).same
    assert "scales, offsets and batch statistics differ" in reproduce.report(one, other, 0)


def test_kept_weights_are_compared(tmp_path):
    one, other = (read_finished(make_run(tmp_path / name)) for name in "ab")
    assert compare(one, other, 0).weights is None
    for run, value in ((one, 1), (other, 1 + 2**-23)):
        save_weights(weight_path(run.folder, 0), {"Dense_0": np.full((2, 2), value, np.float32)})
    assert compare(one, one, 0).weights is True and compare(one, one, 0).same
    assert compare(one, other, 0).weights is False and not compare(one, other, 0).same
    assert "weights differ" in reproduce.report(one, other, 0)


@pytest.mark.slow
def test_a_seed_that_is_excluded_this_time_is_reported(again, copied, tmp_path):
    other = shutil.copytree(again[1], tmp_path / "other")
    summary = read_json(other / "summary.json")
    summary["failed"] = [{"seed": 1, "epoch": 2, "reason": "its loss is not finite"}]
    for name in ("test_accuracy", "remaining_weights"):
        summary[name]["values"] = {}
    write_json(other / "summary.json", summary)
    (line, *_) = reproduce.report(read_finished(copied), read_finished(other), 1)
    assert line == "different: the seed was excluded this time, in epoch 2: its loss is not finite"


@pytest.mark.slow
@pytest.mark.parametrize(
    "content", ["{", "[1]", json.dumps([{"seeds": [1]}]), json.dumps([{"seeds": [1], "environment": 3}])]
)
def test_damaged_environments_are_one_message(copied, content):
    (copied / "environment.json").write_text(content)
    with pytest.raises(UserError, match=r"environment.json is damaged"):
        reproduce.environment_of(read_finished(copied), 1)


@pytest.mark.slow
def test_masks_of_another_net_are_named(again, copied):
    save_masks(mask_path(copied, 1), {"Dense_0": np.zeros((2, 2), np.int8)})
    with pytest.raises(UserError, match=r"seed-0001.npz has other layers than the net"):
        compare(read_finished(copied), read_finished(again[1]), 1)
