import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ssm.runs import history
from ssm.runs import folder
from ssm.errors import UserError
from ssm.runs.history import curve, read_history, write_history
from ssm.runs.lock import held
from ssm.runs.mask_file import load_masks, save_masks
from ssm.runs.example_file import example_path, load_examples
from ssm.runs.folder import clear, mask_path, open_run, read_summary
from ssm.runs.value_file import load_values, value_path
from ssm.runs.weight_file import load_weights, weight_path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = {
    "model": "fcn",
    "method": "signed",
    "init": "elus",
    "preset": "default",
    "dataset": "mnist",
    "epochs": 2,
    "learning_rate": 0.05,
}
ENVIRONMENT = {"jax": "0.10.0", "device": "cpu"}


def row(seed, epoch, **other):
    values = {
        "seed": seed,
        "epoch": epoch,
        "train_loss": 0.5 / epoch,
        "train_accuracy": 0.9,
        "test_loss": 0.4,
        "test_accuracy": 0.9 + seed / 100,
        "remaining_weights": 0.04,
        "flips": 7,
        "seconds": 0.5 * epoch,
        "learning_rate": 0.05,
        "weight_decay": 0.0005,
        "Dense_0:remaining": 0.03,
    }
    return values | other


def final(seed, **other):
    return {"seed": seed, "test_accuracy": 0.9 + seed / 100, "remaining_weights": 0.04} | other


def masks(seed):
    return {"Dense_0": np.array([[seed % 2, -1, 0]], np.int8)}


def open_here(root, **other):
    return open_run(root, **{"config": CONFIG, "environment": ENVIRONMENT, "source": "IDX", "weights": 3} | other)


def add(run, *seeds):
    return run.add_seeds(
        history_rows=[row(seed, epoch) for epoch in (1, 2) for seed in seeds],
        finals=[final(seed) for seed in seeds],
        masks={seed: masks(seed) for seed in seeds},
    )


def test_a_run_has_its_files(tmp_path):
    run = open_here(tmp_path)
    assert run.finished_seeds() == []
    assert run.summary() is None
    summary = add(run, 1, 3)
    assert sorted(str(path.relative_to(run.folder)) for path in run.folder.rglob("*.*")) == [
        "config.json",
        "environment.json",
        "history.csv",
        "masks/seed-0001.npz",
        "masks/seed-0003.npz",
        "summary.json",
    ]
    assert json.loads((run.folder / "config.json").read_text()) == CONFIG
    assert json.loads((run.folder / "environment.json").read_text()) == [{"environment": ENVIRONMENT, "seeds": [1, 3]}]
    lines = (run.folder / "history.csv").read_text().splitlines()
    assert lines[0].startswith("seed,epoch,train_loss,train_accuracy,test_loss,")
    assert lines[1] == "1,1,0.5,0.9,0.4,0.91,0.04,7,0.5,0.05,0.0005,0.03"
    assert [line.split(",")[:2] for line in lines[1:]] == [["1", "1"], ["1", "2"], ["3", "1"], ["3", "2"]]
    np.testing.assert_array_equal(load_masks(mask_path(run.folder, 3))["Dense_0"], [[1, -1, 0]])
    assert summary == read_summary(run.folder)
    accuracy = summary.pop("test_accuracy")
    assert accuracy.pop("values") == {"1": 0.91, "3": 0.93}
    assert accuracy == pytest.approx({"mean": 0.92, "q05": 0.911, "q95": 0.929, "std": 0.0141421356})
    remaining = summary.pop("remaining_weights")
    assert remaining == {"mean": 0.04, "q05": 0.04, "q95": 0.04, "std": 0.0, "values": {"1": 0.04, "3": 0.04}}
    assert summary == {
        "model": "fcn",
        "method": "signed",
        "init": "elus",
        "preset": "default",
        "dataset": "mnist",
        "source": "IDX",
        "epochs": 2,
        "runs": 2,
        "weights": 3,
        "seconds_per_epoch_and_seed": {"mean": 0.75, "median": 0.75},
        "failed": [],
        "frozen": {},
    }


def test_seeds_added_later_give_the_same_files_as_seeds_added_at_once(tmp_path):
    one = open_here(tmp_path / "one")
    add(one, 10, 0, 2)
    add(open_here(tmp_path / "two"), 2)
    two = open_here(tmp_path / "two")
    assert two.finished_seeds() == [2]
    add(two, 0, 10)
    assert two.finished_seeds() == [0, 2, 10]
    for name in ("config.json", "environment.json", "history.csv", "summary.json"):
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()


def test_a_finished_seed_stays_as_it_is(tmp_path):
    run = open_here(tmp_path)
    add(run, 1)
    before = {path: path.read_bytes() for path in run.folder.rglob("*.*")}
    summary = run.add_seeds(
        history_rows=[row(1, 1, train_loss=9.0)], finals=[final(1, test_accuracy=0.1)], masks={1: masks(2)}
    )
    assert summary["test_accuracy"]["values"] == {"1": 0.91}
    assert {path: path.read_bytes() for path in run.folder.rglob("*.*")} == before


def test_a_failed_seed_is_finished_but_in_no_statistics(tmp_path):
    run = open_here(tmp_path)
    nan = float("nan")
    summary = run.add_seeds(
        history_rows=[
            row(0, 1),
            row(1, 1, train_loss=np.float32(nan)),
            row(0, 2),
            row(1, 2, test_accuracy=nan),
        ],
        finals=[final(0), final(1, test_accuracy=nan, failed_epoch=1, failed_reason="why")],
    )
    assert summary["failed"] == [{"seed": 1, "epoch": 1, "reason": "why"}]
    assert summary["runs"] == 1
    assert summary["test_accuracy"] == {
        "mean": 0.9,
        "q05": 0.9,
        "q95": 0.9,
        "std": None,
        "values": {"0": 0.9},
    }
    run = open_here(tmp_path)
    assert run.finished_seeds() == [0, 1]
    rows = read_history(run.folder / "history.csv")
    assert np.isnan([one["train_loss"] for one in rows if one["seed"] == 1]).tolist() == [True, False]
    assert add(run, 2)["failed"] == [{"seed": 1, "epoch": 1, "reason": "why"}]


def test_a_run_whose_seeds_all_failed_has_no_figures(tmp_path):
    run = open_here(tmp_path)
    summary = run.add_seeds(history_rows=[row(0, 1)], finals=[final(0, failed_epoch=1)])
    assert summary["runs"] == 0
    assert summary["test_accuracy"] == {"mean": None, "q05": None, "q95": None, "std": None, "values": {}}
    assert read_summary(run.folder) == summary


def test_figures_that_are_not_finite_must_be_marked(tmp_path):
    run = open_here(tmp_path)
    with pytest.raises(ValueError, match="seed 0 is not marked as failed"):
        run.add_seeds(history_rows=[row(0, 1)], finals=[final(0, test_accuracy=float("nan"))])
    with pytest.raises(ValueError, match=r"without a final entry: \[5\]"):
        run.add_seeds(history_rows=[row(5, 1)], finals=[final(0)])
    assert run.finished_seeds() == []


@pytest.mark.skipif(sys.platform == "win32", reason="no lock there")
def test_two_programs_may_add_seeds_to_one_run(tmp_path):
    def program(seeds):
        run = open_here(tmp_path)
        for seed in seeds:
            add(run, seed)

    with ThreadPoolExecutor(2) as pool:  # each opens the folder anew, and so locks as a process would
        list(pool.map(program, [range(0, 10, 2), range(1, 10, 2)]))
    run = open_here(tmp_path)
    assert run.finished_seeds() == list(range(10))
    assert len(read_history(run.folder / "history.csv")) == 20


@pytest.mark.parametrize("calls", range(4))
def test_a_crash_at_any_write_loses_the_new_seeds_and_nothing_else(tmp_path, monkeypatch, calls):
    run = open_here(tmp_path)
    add(run, 0)
    replace, left = os.replace, [calls]

    def crash(*paths):
        if left[0] == 0:
            raise OSError("disk full")
        left[0] -= 1
        replace(*paths)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        with pytest.raises(OSError, match="disk full"):
            add(run, 1)
    run = open_here(tmp_path)
    assert run.finished_seeds() == [0]
    assert [one["seed"] for one in read_history(run.folder / "history.csv")] == [0, 0]
    add(run, 1)
    whole = open_here(tmp_path / "whole")
    add(whole, 0, 1)
    for name in ("environment.json", "history.csv", "summary.json"):
        assert (run.folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_reopening_drops_what_a_killed_program_left(tmp_path):
    run = open_here(tmp_path)
    add(run, 0)
    (run.folder / ".history.csv.0a1b.tmp").write_text("0,1,")
    (run.folder / "masks" / ".seed-0001.npz.0a1b.tmp").write_text("")
    open_here(tmp_path)
    assert not list(run.folder.rglob("*.tmp"))


def test_another_configuration_in_the_folder_is_refused(tmp_path):
    run = open_here(tmp_path)
    (run.folder / "config.json").write_text(json.dumps(CONFIG | {"epochs": 3, "new": 1}))
    with pytest.raises(UserError, match=r"config\.json holds another configuration \(epochs, new differ\)"):
        open_here(tmp_path)


def test_another_configuration_is_another_folder(tmp_path):
    assert open_here(tmp_path).folder != open_here(tmp_path, config=CONFIG | {"epochs": 3}).folder


def test_another_environment_and_source_are_noted_beside_the_first(tmp_path):
    add(open_here(tmp_path), 0)
    gpu = {"jax": "0.10.0", "device": "gpu"}
    run = open_here(tmp_path, environment=gpu, source="tfds", weights=None)
    summary = add(run, 1)
    assert summary["source"] == "IDX; tfds"
    assert summary["weights"] == 3
    assert json.loads((run.folder / "environment.json").read_text()) == [
        {"environment": ENVIRONMENT, "seeds": [0]},
        {"environment": gpu, "seeds": [1]},
    ]
    assert add(open_here(tmp_path), 2)["source"] == "IDX; tfds"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be written: .*; choose another --out"):
        open_here(tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("summary.json", '{"model": "fcn"}'),
        ("summary.json", "[]"),
        ("summary.json", "{"),
        ("environment.json", "[1]"),
        ("history.csv", "seed,epoch,x\n0,1\n"),
        ("history.csv", "seed,epoch,x\n0,1,word\n"),
        ("history.csv", "x\n"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, content):
    run = open_here(tmp_path)
    add(run, 0)
    (run.folder / name).write_text(content)
    with pytest.raises(UserError, match=rf"{name} is damaged"):
        open_here(tmp_path)


def test_a_history_with_other_columns_is_not_mixed(tmp_path):
    run = open_here(tmp_path)
    add(run, 0)
    with pytest.raises(UserError, match="other columns"):
        run.add_seeds(history_rows=[row(1, 1, extra=0.0)], finals=[final(1)])
    assert run.finished_seeds() == [0]


@pytest.mark.parametrize("counted_first", [False, True])
def test_seeds_with_and_without_counts_of_units_are_of_one_run(tmp_path, counted_first):
    counts = {"live_units": 300, "trained_units": 400, "Dense_0:live_units": 200}
    run = open_here(tmp_path)
    for seed in range(2):
        own = counts if (seed == 0) == counted_first else {}
        run.add_seeds(history_rows=[row(seed, 1, **own)], finals=[final(seed)], masks={seed: masks(seed)})
    first, second = read_history(run.folder / "history.csv")
    counted, other = (first, second) if counted_first else (second, first)
    assert {name: counted[name] for name in counts} == counts
    assert all(np.isnan(other[name]) for name in counts)
    assert "live_units:mean" not in curve([first, second])[0]
    assert curve([counted])[0]["live_units:mean"] == 300


def test_history_keeps_numbers_exactly(tmp_path):
    path = tmp_path / "history.csv"
    rows = [{"seed": 0, "epoch": 1, "a": 0.1 + 0.2, "b": np.float32(0.1), "c": np.int64(5)}]
    write_history(path, rows)
    assert path.read_text() == "seed,epoch,a,b,c\n0,1,0.30000000000000004,0.1,5\n"
    assert read_history(path) == [{"seed": 0, "epoch": 1, "a": 0.1 + 0.2, "b": 0.1, "c": 5}]
    write_history(path, [])
    assert read_history(path) == []
    with pytest.raises(ValueError, match=r"differ in their columns: \['b'\]"):
        write_history(path, [{"seed": 0, "epoch": 1}, {"seed": 0, "epoch": 2, "b": 1}])
    with pytest.raises(ValueError, match="word"):
        write_history(path, [{"seed": 0, "epoch": 1, "a": "word"}])


def test_curve_leaves_failed_seeds_out():
    points = curve([row(0, 1), row(2, 1), row(9, 1, test_accuracy=float("nan")), row(0, 2)], failed=[9])
    assert [(point["epoch"], point["seeds"]) for point in points] == [(1, 2), (2, 1)]
    assert points[0]["test_accuracy:mean"] == pytest.approx(0.91)
    assert points[0]["test_accuracy:q05"] == pytest.approx(0.901)
    assert list(points[0])[2:] == [f"{name}:{key}" for name in history.CURVE for key in ("mean", "q05", "q95")]


@given(
    st.dictionaries(
        st.text(st.sampled_from("aZ09_/.:- ä"), min_size=1, max_size=20),
        hnp.arrays(np.int8, hnp.array_shapes(min_dims=0, max_dims=5, min_side=0), elements=st.integers(-1, 1)),
        max_size=3,
    )
)
def test_masks_come_back_exactly(tmp_path_factory, given_masks):
    path = tmp_path_factory.getbasetemp() / "masks.npz"
    save_masks(path, given_masks)
    found = load_masks(path)
    assert list(found) == list(given_masks)
    for layer, mask in given_masks.items():
        assert found[layer].dtype == np.int8
        assert found[layer].shape == mask.shape
        np.testing.assert_array_equal(found[layer], mask)


def test_masks_take_two_bits_a_weight(tmp_path):
    save_masks(tmp_path / "a.npz", {"Dense_0": np.array([-1.0, 0.0, 1.0, 1.0, -1.0], np.float32)})
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert file["Dense_0:codes"].tolist() == [0b10100100, 0]
        assert file["Dense_0:shape"].tolist() == [5]
    random = np.random.default_rng(0).integers(-1, 2, (784, 300))
    save_masks(tmp_path / "b.npz", {"Dense_0": random})
    assert (tmp_path / "b.npz").stat().st_size < 784 * 300 / 4 + 1000


def test_masks_with_other_values_are_refused(tmp_path):
    with pytest.raises(ValueError, match="mask of Dense_0 has values other"):
        save_masks(tmp_path / "a.npz", {"Dense_0": np.array([0.5])})


def test_damaged_masks_are_named(tmp_path):
    path = tmp_path / "a.npz"
    save_masks(path, {"Dense_0": np.zeros((30, 30), np.int8)})
    whole = path.read_bytes()
    np.savez(tmp_path / "codes.npz", **{"L:codes": np.array([3], np.uint8), "L:shape": np.array([4])})
    np.savez(tmp_path / "short.npz", **{"L:codes": np.array([0], np.uint8), "L:shape": np.array([5])})
    np.savez(tmp_path / "absent.npz", **{"L:shape": np.array([5])})
    np.save(tmp_path / "array.npy", np.zeros(3))
    others = [(tmp_path / name).read_bytes() for name in ("codes.npz", "short.npz", "absent.npz", "array.npy")]
    for content in (b"", whole[:-40], whole[:50], b"text", *others):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"a\.npz is damaged"):
            load_masks(path)
    with pytest.raises(UserError, match="does not exist"):
        load_masks(tmp_path / "other.npz")


def test_a_flipped_byte_is_found_or_harmless(tmp_path):
    path = tmp_path / "a.npz"
    mask = np.arange(60).reshape(3, 20) % 3 - 1
    save_masks(path, {"Dense_0": mask})
    whole = path.read_bytes()
    found = 0
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            read = load_masks(path)
        except UserError:
            found += 1
        else:  # a date, say
            assert list(read) == ["Dense_0"]
            np.testing.assert_array_equal(read["Dense_0"], mask)
    assert found > len(whole) / 2


def publish(*arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "experiments" / "publish.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'experiments'}"},
        check=False,
    )


def test_publishing_copies_the_small_files(tmp_path):
    run = open_here(tmp_path / "runs")
    run.add_seeds(history_rows=[row(0, 1), row(1, 1)], finals=[final(0), final(1, failed_epoch=1)])
    done = publish(run.folder, tmp_path / "results")
    assert (done.returncode, done.stderr) == (0, "")
    target = tmp_path / "results" / run.folder.name
    assert sorted(path.name for path in target.iterdir()) == [
        "config.json",
        "curve.csv",
        "environment.json",
        "summary.json",
    ]
    assert (target / "summary.json").read_bytes() == (run.folder / "summary.json").read_bytes()
    lines = (target / "curve.csv").read_text().splitlines()
    assert lines[0].startswith("epoch,seeds,test_accuracy:mean,test_accuracy:q05,")
    assert lines[1:] == ["1,1,0.9,0.9,0.9,0.04,0.04,0.04,0.5,0.5,0.5,0.4,0.4,0.4,7,7,7"]


def test_publishing_refuses_what_is_large_or_no_run(tmp_path):
    run = open_here(tmp_path / "runs", environment={"log": "x" * 100_001})
    add(run, 0)
    done = publish(run.folder, tmp_path / "results")
    assert done.returncode == 2
    assert "environment.json of" in done.stderr and "at most 100,000" in done.stderr
    assert not (tmp_path / "results").exists()
    done = publish(tmp_path, tmp_path / "results")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"publish.py: {tmp_path} holds no run with finished seeds: no summary.json in it\n"


def test_results_need_no_jax():
    code = "import sys, ssm.runs.folder, paper.tables; sys.exit('jax' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'experiments'}"}).returncode == 0
    assert folder.Run.__dataclass_params__.frozen


def test_a_folder_is_cleared_but_for_its_lock(tmp_path):
    with held(tmp_path / "new") as folder:
        clear(folder)  # there is nothing yet
    run = open_here(tmp_path)
    add(run, 1)
    (run.folder / "checkpoints").mkdir()
    with held(run.folder):
        clear(run.folder)
        assert {path.name for path in run.folder.iterdir()} == {".lock", ".holder.json"}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    with pytest.raises(UserError, match="holds no run: nothing in it is removed"):
        clear(tmp_path / "mine")


def test_a_killed_write_leaves_no_litter_behind(tmp_path):
    run = open_here(tmp_path)
    for folder in ("", "masks", "checkpoints", "parts"):
        (run.folder / folder).mkdir(exist_ok=True)
        (run.folder / folder / ".x.json.0a1b2c3d.tmp").write_text("half")
    open_here(tmp_path)
    assert not list(run.folder.rglob("*.tmp"))


def test_parts_of_other_processes_are_added_once(tmp_path):
    run = open_here(tmp_path)
    mask = {"Dense_0": np.array([1, 0, -1], np.int8)}
    bad = final(2, test_accuracy=float("nan"), remaining_weights=float("nan"), failed_epoch=3, failed_reason="why")
    values = {1: {"params/BatchNorm_0/scale": np.array([2, 3], np.float32)}, 2: {}}
    more = {"values": values, "weights": {1: {"Dense_0": np.array([2, 0, -3], np.float32)}}}
    run.add_part(history_rows=[row(1, 1)], finals=[final(1), bad], masks={1: mask}, **more)
    assert run.finished_seeds() == []
    run.add_parts()
    run.add_parts()
    assert run.finished_seeds() == [1, 2] and run.summary()["failed"] == [{"seed": 2, "epoch": 3, "reason": "why"}]
    np.testing.assert_array_equal(load_masks(mask_path(run.folder, 1))["Dense_0"], [1, 0, -1])
    np.testing.assert_array_equal(load_values(value_path(run.folder, 1))["params/BatchNorm_0/scale"], [2, 3])
    np.testing.assert_array_equal(load_weights(weight_path(run.folder, 1))["Dense_0"], [2, 0, -3])
    assert not value_path(run.folder, 2).exists() and not weight_path(run.folder, 2).exists()
    assert not list((run.folder / "parts").iterdir())
    (run.folder / "parts" / "x.json").write_text("{}")
    with pytest.raises(UserError, match="not a part of a run"):
        run.add_parts()


def test_hashes_and_examples_come_with_their_seeds(tmp_path):
    run = open_here(tmp_path)
    examples = {"inputs": np.zeros((2, 4), np.uint8), "outputs": np.ones((2, 3), np.float32)}

    def given(*seeds):
        return {
            "history_rows": [row(seed, 1) for seed in seeds],
            "finals": [final(seed, frozen=f"hash {seed}") for seed in seeds],
            "masks": {seed: masks(seed) for seed in seeds},
            "examples": dict.fromkeys(seeds, examples),
        }

    run.add_seeds(**given(2))
    run.add_part(**given(0))
    assert read_summary(run.folder)["frozen"] == {"2": "hash 2"}
    run.add_parts()
    add(run, 4)  # an older version's
    run.add_seeds(history_rows=[], finals=[final(5, frozen="hash 5", failed_epoch=1)])
    assert read_summary(run.folder)["frozen"] == {"0": "hash 0", "2": "hash 2"}
    for seed in (0, 2):
        np.testing.assert_array_equal(load_examples(example_path(run.folder, seed))[1], examples["outputs"])
