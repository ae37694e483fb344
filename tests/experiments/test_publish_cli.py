import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ssm.runs.example_file import example_path, load_examples
from ssm.runs.folder import open_run
from ssm.runs.reader import read_finished
from ssm.runs.value_file import load_values, value_path

PROGRAM = Path(__file__).parents[2] / "experiments" / "publish.py"


def publish(*arguments):
    return subprocess.run([sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def run(tmp_path):
    config = {"model": "fcn", "method": "signed", "init": "elus", "preset": "default", "dataset": "mnist", "epochs": 1}
    made = open_run(tmp_path / "runs", config=config, environment={"device": "cpu"})
    row = {"epoch": 1, "train_loss": 1.0, "test_loss": 1.0, "test_accuracy": 0.5, "flips": 0.0}
    row |= {"remaining_weights": 0.5}
    large = np.random.default_rng(0).random((1, 30_000), np.float32)
    made.add_seeds(
        history_rows=[{"seed": seed, **row} for seed in range(3)],
        finals=[{"seed": seed, "test_accuracy": 0.5, "remaining_weights": 0.5, "frozen": "0ab"} for seed in range(3)],
        masks={seed: {"Dense_0": np.asarray([[0, seed - 1]], np.int8)} for seed in range(3)},
        values={1: {"params/BatchNorm_0/scale": np.ones(2, np.float32)}},
        weights={1: {"Dense_0": np.float32([[0, 2]])}, 2: {"Dense_0": large}},
        examples={1: {"inputs": np.zeros((2, 4), np.uint8), "outputs": np.ones((2, 3), np.float32)}},
    )
    return made.folder


def test_a_published_run_says_what_the_run_says(run, tmp_path):
    done = publish(run, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    ours, theirs = read_finished(run), read_finished(tmp_path / "out" / run.name)
    assert (theirs.config, theirs.summary) == (ours.config, ours.summary)
    assert theirs.curve() == ours.curve()
    np.testing.assert_array_equal(theirs.masks()["Dense_0"], [[[0, -1]], [[0, 0]], [[0, 1]]])
    assert list(load_values(value_path(theirs.folder, 1))) == ["params/BatchNorm_0/scale"]
    assert load_examples(example_path(theirs.folder, 1))[1].shape == (2, 3) and theirs.frozen_hash(1) == "0ab"
    assert not (theirs.folder / "history.csv").exists()
    np.testing.assert_array_equal(theirs.weights(1)["Dense_0"], [[0, 2]])


def test_large_weights_are_left_out_with_a_message(run, tmp_path):
    done = publish(run, tmp_path / "out")
    assert done.returncode == 0 and "without weights/seed-0002.npz: it has" in done.stderr
    assert [path.name for path in (tmp_path / "out" / run.name).glob("weights/*")] == ["seed-0001.npz"]


def test_fewer_masks_or_none_are_copied_when_asked_for(run, tmp_path):
    assert publish(run, tmp_path / "two", "--masks", 2).returncode == 0
    assert read_finished(tmp_path / "two" / run.name).mask_seeds == [0, 1]
    assert publish(run, tmp_path / "none", "--masks", 0).returncode == 0
    assert not read_finished(tmp_path / "none" / run.name).has_masks
    done = publish(run, run.parent, "--masks", 0)
    assert done.returncode == 2 and "is the folder that the run is in" in done.stderr
    assert read_finished(run).mask_seeds == [0, 1, 2]
    done = publish(run, tmp_path / "wrong", "--masks", -1)
    assert done.returncode == 2 and "0 or more" in done.stderr
    assert not (tmp_path / "wrong").exists()
