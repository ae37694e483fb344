"""The programs run as a user runs them: by path, from another folder, on files of the user's own."""

import csv
import importlib.util
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ssm.runs.folder import read_summary
from ssm.runs.history import read_history
from ssm.runs.mask_file import load_masks
from ssm.runs.names import config_hash
from tests.support.programs import ROOT, Place
from tests.support.quick import quick

TRAIN, TEST = 320, 100
LAYERS = {"Dense_0": (784, 300), "Dense_1": (300, 100), "Dense_2": (100, 10)}
WEIGHTS = 784 * 300 + 300 * 100 + 100 * 10
RECIPE = ("--model=fcn", "--dataset=mnist", "--epochs=2", "--batch-size=32")


class Ran(NamedTuple):
    """What a run printed, and what its folder held when it had ended."""

    place: Place
    stdout: str
    stderr: str
    folder: Path
    files: dict[str, bytes]


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def idx(array):
    array = np.asarray(array, np.uint8)
    return bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes()


def write_data(folder):
    """Ten classes of noisy 28 x 28 images that a net learns in an epoch, under the names of MNIST's files."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 256, (10, 28, 28))
    for part, count in (("train", TRAIN), ("t10k", TEST)):
        labels = np.arange(count) % 10
        images = np.clip(centres[labels] + rng.normal(0, 60, (count, 28, 28)), 0, 255)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("files") / "data")


@pytest.fixture
def place(tmp_path, data):
    (tmp_path / "here").mkdir()
    return Place(tmp_path / "here", data)


def train(place, *arguments):
    return place.program("train.py", *RECIPE, f"--data-dir={place.data}", *arguments)


def finished(place, *arguments):
    done = train(place, *arguments)
    assert done.returncode == 0, done.stderr
    (folder,) = (place.here / "runs").iterdir()
    return Ran(place, done.stdout, done.stderr, folder, contents(folder))


@pytest.fixture(scope="module")
def first(tmp_path_factory, data):
    place = Place(tmp_path_factory.mktemp("user") / "here", data)
    place.here.mkdir()
    return finished(place, "--seeds=2")


@pytest.fixture(scope="module")
def again(first):
    return finished(first.place, "--seeds=2")


@pytest.fixture(scope="module")
def more(again):
    return finished(again.place, "--seeds=3", "--live-units=off")


def decoded(ran, name):
    return json.loads(ran.files[name])


def rows(ran):
    return list(csv.DictReader(ran.files["history.csv"].decode().splitlines()))


def test_a_run_prints_data_configuration_and_table(first):
    lines = first.stdout.splitlines()
    assert lines[0] == f"data: mnist: files in {first.place.data} (not the published files)"
    assert lines[1].startswith("configuration: model=fcn, method=signed, init=elus, preset=default, dataset=mnist, ")
    assert "epochs=2, batch_size=32, learning_rate=0.05, weight_decay=0.0005, decay=decoupled" in lines[1]
    assert f"results: runs/{first.folder.name}" in lines
    table = first.stdout[first.stdout.index("fcn signed elus") :]
    assert table.startswith("fcn signed elus, preset default, mnist, 266,200 weights: 2 seeds, 2 epochs\n")
    interval = r"\d+\.\d\d \[\d+\.\d\d, \d+\.\d\d\]"
    for label, paper in (("test accuracy %", "97.48 [97.3, 97.7]"), ("remaining weights %", "3.77 [3.7, 3.8]")):
        assert re.search(rf"^{label}  +{interval}  +{re.escape(paper)}  ", table, re.MULTILINE)
    assert re.search(r"^s / epoch / seed  +\d\S*  +1\.27$", table, re.MULTILINE)


def test_without_a_terminal_progress_is_plain_lines(first):
    line = r"2 seeds, epoch %d/2: accuracy \d+\.\d\d%%, remaining weights \d+\.\d\d%%, live units 400, \d+ s left"
    lines = first.stderr.splitlines()
    assert len(lines) == 2, first.stderr  # nothing else either: no warning, no bar
    assert all(re.fullmatch(line % (epoch + 1), text) for epoch, text in enumerate(lines))


def test_a_run_is_one_folder_with_all_its_files(first):
    assert list(first.place.here.iterdir()) == [first.place.here / "runs"]
    assert sorted(first.files) == [
        ".lock",
        "config.json",
        "environment.json",
        "examples/seed-0000.npz",
        "examples/seed-0001.npz",
        "history.csv",
        "journal.jsonl",
        "masks/seed-0000.npz",
        "masks/seed-0001.npz",
        "summary.json",
    ]
    config = decoded(first, "config.json")
    assert first.folder.name == f"fcn-signed-elus-{config_hash(config)}"
    assert (config["dataset"], config["epochs"], config["batch_size"]) == ("mnist", 2, 32)
    assert not {"seeds", "data_dir", "out", "group"} & set(config)
    (entry,) = decoded(first, "environment.json")
    assert entry["seeds"] == [0, 1]
    assert {"python", "jax", "flax", "numpy", "device", "precision", "git_commit"} <= set(entry["environment"])
    assert entry["environment"]["live_units"] == "on"


def test_the_history_has_a_row_per_seed_and_epoch(first):
    history = rows(first)
    assert [(row["seed"], row["epoch"]) for row in history] == [("0", "1"), ("0", "2"), ("1", "1"), ("1", "2")]
    expected = {"train_loss", "train_accuracy", "test_loss", "test_accuracy", "remaining_weights", "flips", "seconds"}
    shares = {f"{layer}:{share}" for layer in LAYERS for share in ("remaining", "minus", "zero", "plus", "flips")}
    assert expected | shares <= set(history[0])
    assert all(np.isfinite(float(value)) for row in history for value in row.values())
    assert float(history[1]["train_loss"]) < float(history[0]["train_loss"])


def test_summary_history_and_masks_agree(first):
    summary = decoded(first, "summary.json")
    assert (summary["runs"], summary["weights"], summary["failed"]) == (2, WEIGHTS, [])
    assert summary["source"] == f"mnist: files in {first.place.data} (not the published files)"
    last = {row["seed"]: row for row in rows(first)}
    for seed in ("0", "1"):
        masks = load_masks(first.folder / "masks" / f"seed-000{seed}.npz")
        assert {layer: mask.shape for layer, mask in masks.items()} == LAYERS
        assert all(np.isin(mask, (-1, 0, 1)).all() for mask in masks.values())
        kept = sum(int(np.count_nonzero(mask)) for mask in masks.values()) / WEIGHTS
        assert kept == pytest.approx(summary["remaining_weights"]["values"][seed], rel=1e-6)
        assert float(last[seed]["remaining_weights"]) == summary["remaining_weights"]["values"][seed]
        assert float(last[seed]["test_accuracy"]) == summary["test_accuracy"]["values"][seed]
    assert summary["test_accuracy"]["mean"] > 0.9  # it has learned, so what it was tested on is the data given


def test_the_same_command_again_trains_nothing(first, again):
    lines = first.stdout.splitlines(keepends=True)
    assert again.stdout == "".join(line for line in lines if not line.startswith("first batch: "))
    assert again.stderr == ""
    assert again.files == first.files


@pytest.mark.slow
def test_further_seeds_leave_the_finished_ones_alone(first, more):
    masks = {name for name in more.files if name.startswith("masks/")}
    assert masks == {"masks/seed-0000.npz", "masks/seed-0001.npz", "masks/seed-0002.npz"}
    for name in masks & set(first.files):
        assert more.files[name] == first.files[name]
    assert more.files["masks/seed-0002.npz"] not in [first.files[name] for name in masks & set(first.files)]
    assert rows(more)[:4] == rows(first)
    assert [row["seed"] for row in rows(more)] == ["0", "0", "1", "1", "2", "2"]
    assert all(line.startswith("seed 2, epoch ") for line in more.stderr.splitlines())
    assert "266,200 weights: 3 seeds, 2 epochs" in more.stdout
    assert sorted(seed for entry in decoded(more, "environment.json") for seed in entry["seeds"]) == [0, 1, 2]


@pytest.mark.slow
def test_the_table_lists_the_run_beside_the_paper(more):
    done = more.place.program("table.py", more.place.here / "runs", "--tables=fcn")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = (line for line in done.stdout.splitlines() if more.folder.name in line)
    preset = "default, other batch size, decay steps"  # of --batch-size, and of fewer images than MNIST has
    assert (
        line.startswith(f"| fcn | signed | elus | {preset} | mnist | 2 of 100 | 3 | ") and "97.48 [97.3, 97.7]" in line
    )
    done = more.place.program("table.py", more.folder, "--tables=fcn", "--format=csv")
    (record,) = (row for row in csv.DictReader(done.stdout.splitlines()) if row["run"])
    summary = decoded(more, "summary.json")
    assert (record["run"], record["runs"]) == (more.folder.name, "3")
    assert float(record["accuracy_mean"]) == pytest.approx(100 * summary["test_accuracy"]["mean"])
    assert float(record["remaining_q95"]) == pytest.approx(100 * summary["remaining_weights"]["q95"])


@pytest.mark.slow
def test_a_published_run_is_listed_all_the_same(more, tmp_path):
    done = more.place.program("publish.py", more.folder, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    published = tmp_path / more.folder.name
    assert done.stdout == f"{published}\n"
    kept = [f"{kind}/seed-000{seed}.npz" for kind in ("examples", "masks") for seed in range(3)]
    assert sorted(contents(published)) == ["config.json", "curve.csv", "environment.json", *kept, "summary.json"]
    assert read_summary(published) == decoded(more, "summary.json")
    curve = list(csv.DictReader((published / "curve.csv").read_text().splitlines()))
    assert [(point["epoch"], point["seeds"]) for point in curve] == [("1", "3"), ("2", "3")]
    final = [row["remaining_weights"] for row in read_history(more.folder / "history.csv") if row["epoch"] == 2]
    assert float(curve[1]["remaining_weights:mean"]) == pytest.approx(np.mean(final), rel=1e-5)
    mine, theirs = (
        more.place.program("table.py", folder, "--tables=fcn,runs").stdout for folder in (more.folder, tmp_path)
    )
    assert mine == theirs


def test_a_dry_run_says_what_it_would_take_and_writes_nothing(place):
    done = train(place, "--seeds=7", "--preset=paper", "--init=he", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "method=signed, init=he, preset=paper, dataset=mnist, epochs=2, batch_size=32" in done.stdout
    assert "order=fixed" in done.stdout
    assert "266,200\n" in done.stdout
    memory = re.search(r"^memory: about (\d+\.\d) GB with 7 seeds at once on \d+ device", done.stdout, re.MULTILINE)
    assert memory and float(memory[1]) > 0
    assert re.search(r"^time: at most about \S+ s per epoch and seed, \S+ min for 7 seeds$", done.stdout, re.MULTILINE)
    assert list(place.here.iterdir()) == []


def test_help_names_every_option_without_loading_jax(place):
    spec = importlib.util.spec_from_file_location("run_options", ROOT / "experiments" / "options.py")
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    done = place.program("train.py", "--help", python=("-X", "importtime"))
    assert done.returncode == 0
    for field in fields(program.Options):
        assert re.search(rf"--{field.name.replace('_', '-')}\b", done.stdout), field.name
    examples = [line for line in done.stdout.splitlines() if line.startswith("- python experiments/train.py ")]
    assert len(examples) == 3  # a line each
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert {"tyro", "ssm"} <= loaded  # the list is what it seems
    assert not {"jax", "flax", "optax", "scipy"} & loaded


@pytest.mark.parametrize(
    ("arguments", "message"),
    quick(
        [
            (["--model=vgg"], "--model=vgg is not known"),
            (["--threshold=absolute:much"], "cannot read threshold 'absolute:much'"),
            (["--epochs=0"], "--epochs must be a whole number above 0; got 0"),
            ([f"--batch-size={TRAIN + 1}"], f"--batch-size={TRAIN + 1} is larger than the data set: mnist has {TRAIN}"),
            (["--seeds=5:5"], "--seeds=5:5 names no seeds"),
            (["--group=0"], "--group must be at least 1"),
            (["--data-dir=nowhere"], "nowhere: no such folder"),
            (["--data-dir=empty"], "empty: no files of mnist"),
            (["--data-dir=damaged"], "damaged/train-images-idx3-ubyte: truncated, 5,000 bytes"),
            (["--out=a-file"], "a-file/fcn-signed-elus-"),
        ],
        5,
    ),
    ids=lambda value: value[0].removeprefix("--") if isinstance(value, list) else "",
)
def test_an_error_is_one_message_and_leaves_nothing_behind(place, data, arguments, message):
    (place.here / "a-file").write_text("the user's own")
    (place.here / "empty").mkdir()
    (place.here / "damaged").mkdir()
    for name, content in contents(data).items():
        (place.here / "damaged" / name).write_bytes(content[:5000])
    before = contents(place.here)
    done = train(place, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("train.py: ") and done.stderr.endswith("\n") and done.stderr.count("\n") == 1
    assert message in done.stderr
    assert contents(place.here) == before
    assert sorted(path.name for path in place.here.iterdir()) == ["a-file", "damaged", "empty"]


def test_a_model_and_data_that_do_not_fit_are_refused_before_any_data_is_sought(place):
    done = place.program("train.py", "--model=fcn", "--dataset=cifar10")  # no --data-dir: it would be downloaded
    assert done.returncode == 2
    assert done.stderr.startswith("train.py: --model=fcn is not made for --dataset=cifar10")
    assert done.stderr.count("\n") == 1 and done.stdout == ""
    assert list(place.here.iterdir()) == []


def test_a_value_of_the_wrong_type_is_refused(place):
    done = train(place, "--epochs=many")
    assert done.returncode == 2
    assert "--epochs" in done.stderr + done.stdout and "Traceback" not in done.stderr
    assert list(place.here.iterdir()) == []
