import csv
import io
import shutil
from pathlib import Path

import numpy as np
import pytest

from ssm.errors import LeftOut, UserError
from ssm.files import read_json, write_json
from ssm.runs.reader import DamagedRun, find_finished, read_finished, without_damaged
from ssm.runs.history import curve
from ssm.runs.mask_file import save_masks
from ssm.runs.folder import mask_path, open_run

CONFIG = {"model": "fcn", "method": "signed", "init": "elus", "preset": "default", "dataset": "mnist", "epochs": 2}
ROOT = Path(__file__).resolve().parents[2]


def row(seed, epoch):
    shares = {"test_accuracy": 0.9 + seed / 100, "remaining_weights": 0.1 / epoch, "flips": 0.5 / epoch}
    return {"seed": seed, "epoch": epoch, "train_loss": 1 / epoch, "test_loss": 2 / epoch, "seconds": 0.5, **shares}


def mask(seed):
    return {"Dense_0": np.array([[seed % 2, -1, 0]], np.int8), "Dense_1": np.array([[1], [0], [seed % 3 - 1]], np.int8)}


def make(root, seeds=(0, 3, 12), failed=(), kept=None, **other):
    run = open_run(root, config=CONFIG | other, environment={"device": "cpu"}, source="made")
    finals = [{"seed": seed, "test_accuracy": 0.9 + seed / 100, "remaining_weights": 0.05} for seed in seeds]
    finals += [
        {"seed": seed, "test_accuracy": float("nan"), "remaining_weights": float("nan"), "failed_epoch": 2}
        for seed in failed
    ]
    rows = [row(seed, epoch) for seed in (*seeds, *failed) for epoch in (1, 2)]
    masks = {seed: mask(seed) for seed in (seeds if kept is None else kept)}
    run.add_seeds(history_rows=rows, finals=finals, masks=masks)
    return run.folder


def publish(folder, dest):
    """Leave of a run what is published of it."""
    points = read_finished(folder).curve()
    dest = dest / folder.name
    dest.mkdir(parents=True)
    for name in ("config.json", "summary.json"):
        shutil.copy(folder / name, dest)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(points[0])
    writer.writerows([f"{value:.6g}" for value in point.values()] for point in points)
    (dest / "curve.csv").write_text(text.getvalue())
    return dest


def test_a_run_is_read(tmp_path):
    folder = make(tmp_path, failed=(5,))
    run = read_finished(folder)
    assert run.name == folder.name and run.config == CONFIG
    assert run.seeds == run.mask_seeds == [0, 3, 12] and run.has_masks
    assert run.summary["runs"] == 3


def test_the_name_is_the_folders_own(tmp_path, monkeypatch):
    folder = make(tmp_path)
    monkeypatch.chdir(folder)
    assert read_finished(".").name == folder.name


def test_masks_are_stacked_by_seed(tmp_path):
    run = read_finished(make(tmp_path))
    found = run.masks()
    assert {layer: (stack.shape, stack.dtype) for layer, stack in found.items()} == {
        "Dense_0": ((3, 1, 3), np.int8),
        "Dense_1": ((3, 3, 1), np.int8),
    }
    assert found["Dense_0"][:, 0, 0].tolist() == [0, 1, 0]
    assert run.masks([12, 3])["Dense_0"][:, 0, 0].tolist() == [0, 1]


def test_a_folder_may_keep_the_masks_of_some_seeds_alone(tmp_path):
    run = read_finished(make(tmp_path, kept=(3,)))
    assert run.mask_seeds == [3] and run.masks()["Dense_0"].shape == (1, 1, 3)
    with pytest.raises(UserError, match="no masks of seeds 0, 7"):
        run.masks([0, 3, 7])
    with pytest.raises(UserError, match="no seeds"):
        run.masks([])


def test_a_published_run_and_a_baseline_have_no_masks(tmp_path):
    published = read_finished(publish(make(tmp_path / "a"), tmp_path / "b"))
    baseline = read_finished(make(tmp_path, method="baseline", init="elu"))
    assert not published.has_masks and not baseline.has_masks
    with pytest.raises(UserError, match="keeps no masks"):
        published.masks()
    with pytest.raises(UserError, match="is a baseline"):
        baseline.masks([0])


def test_masks_of_another_net_are_damage(tmp_path):
    folder = make(tmp_path)
    save_masks(mask_path(folder, 3), {"Dense_0": np.zeros((2, 2), np.int8)})
    with pytest.raises(UserError, match=r"seed-0003.npz is damaged: its layers"):
        read_finished(folder).masks()


def test_the_curve_leaves_failed_and_unfinished_seeds_out(tmp_path):
    folder = make(tmp_path, failed=(5,))
    with open(folder / "history.csv", "a") as file:
        file.write("99,1,9,9,9,9,9,9\n")  # what a crash left behind
    found = read_finished(folder).curve()
    assert found == curve([row(seed, epoch) for seed in (0, 3, 12) for epoch in (1, 2)])
    assert [point["seeds"] for point in found] == [3, 3]
    assert found[0]["test_accuracy:mean"] == pytest.approx(0.95)


def test_the_curve_of_a_published_run_is_the_same(tmp_path):
    folder = make(tmp_path / "a")
    found = read_finished(publish(folder, tmp_path / "b")).curve()
    for ours, own in zip(found, read_finished(folder).curve(), strict=True):
        assert ours == pytest.approx(own) and list(ours) == list(own)
        assert isinstance(ours["epoch"], int) and isinstance(ours["seeds"], int)


@pytest.mark.parametrize("text", ["", "1,2\n", "epoch,seeds,a\n1,2\n", "epoch,seeds\n1,2,3\n", "epoch,seeds\n1,x\n"])
def test_a_damaged_curve_is_named(tmp_path, text):
    folder = publish(make(tmp_path / "a"), tmp_path / "b")
    (folder / "curve.csv").write_text(text)
    with pytest.raises(UserError, match=r"curve.csv is damaged"):
        read_finished(folder).curve()


def test_a_missing_curve_is_named(tmp_path):
    folder = publish(make(tmp_path / "a"), tmp_path / "b")
    (folder / "curve.csv").unlink()
    with pytest.raises(UserError, match=r"curve.csv does not exist"):
        read_finished(folder).curve()


def test_settings_of_an_older_run_are_the_usual_ones(tmp_path):
    run = read_finished(make(tmp_path, width=2.0))
    names = ("model", "width", "projections", "batch_norm", "score_scale", "schedule")
    assert [run.setting(name) for name in names] == ["fcn", 2.0, 1, "none", "xavier", "exponential"]
    with pytest.raises(UserError, match=r"config.json has no depth"):
        run.setting("depth")


def test_settings_without_a_configuration_are_the_summarys(tmp_path):
    folder = make(tmp_path)
    (folder / "config.json").unlink()
    run = read_finished(folder)
    assert run.config == {} and run.setting("init") == "elus" and run.setting("epochs") == 2 and run.has_masks


def test_runs_are_found_in_folders_and_one_level_down(tmp_path):
    one, two = make(tmp_path / "a"), make(tmp_path / "a", init="he")
    (tmp_path / "a" / "begun").mkdir()
    assert {run.name for run in find_finished([tmp_path / "a"])} == {one.name, two.name}
    assert [run.name for run in find_finished([two, tmp_path / "a"])] == [two.name, one.name]


def test_of_two_of_one_name_the_larger_or_the_one_with_masks_is_taken(tmp_path):
    own = make(tmp_path / "own")
    published = publish(own, tmp_path / "published")
    larger = make(tmp_path / "larger", seeds=range(4), kept=())
    assert [run.folder for run in find_finished([published, own])] == [own]
    assert [run.folder for run in find_finished([own, published])] == [own]
    assert [run.folder for run in find_finished([own, larger, published])] == [larger]


def test_folders_without_runs_and_damaged_files_are_named(tmp_path):
    (tmp_path / "empty").mkdir()
    for function in (read_finished, lambda folder: find_finished([folder])):
        with pytest.raises(UserError, match=r"empty holds no run with finished seeds"):
            function(tmp_path / "empty")
    with pytest.raises(UserError, match=r"missing cannot be read"):
        find_finished([tmp_path / "missing"])
    folder = make(tmp_path)
    write_json(folder / "config.json", [1])
    with pytest.raises(UserError, match=r"config.json is damaged"):
        read_finished(folder)
    write_json(folder / "config.json", CONFIG)
    write_json(folder / "summary.json", read_json(folder / "summary.json") | {"failed": None})
    with pytest.raises(UserError, match=r"summary.json is damaged"):
        read_finished(folder)


@pytest.mark.parametrize("file", ["summary.json", "config.json"])
def test_a_damaged_run_among_others_is_left_out_and_named(tmp_path, file):
    good, half = make(tmp_path / "a"), make(tmp_path / "b", width=2.0)
    (half / file).write_bytes((half / file).read_bytes()[:40])
    for places in ([tmp_path / "a", tmp_path / "b"], [half, good]):
        with pytest.warns(LeftOut, match=rf"{half.name} is left out: .*{file} is damaged"):
            assert [run.folder for run in find_finished(places)] == [good]
    with pytest.raises(DamagedRun, match=rf"{file} is damaged"):
        find_finished([half])


def test_what_is_made_of_runs_is_made_without_the_damaged_ones(tmp_path):
    good, half, bad = (read_finished(make(tmp_path / name)) for name in "abc")
    (half.folder / "history.csv").write_text("seed\n")
    (bad.folder / "history.csv").unlink()

    def lengths(runs):
        return [len(run.curve()) for run in runs.values()]

    by_folder = {run.folder: run for run in (half, good, bad)}
    with pytest.warns(LeftOut) as said:
        assert without_damaged(by_folder, lengths) == [2]
    assert [str(one.message).split(" is left out")[0] for one in said] == [str(half.folder), str(bad.folder)]
    with pytest.raises(DamagedRun, match="history.csv"):
        without_damaged({half.folder: half}, lengths)
    with pytest.raises(UserError, match="no such"):

        def other(runs):
            raise UserError("no such")

        without_damaged(by_folder, other)


def test_every_published_run_is_read():
    for run in find_finished([ROOT / "experiments" / "results"]):
        points = run.curve()
        assert len(points) == run.setting("epochs") and points[-1]["seeds"] == len(run.seeds) == run.summary["runs"]
        assert points[-1]["test_accuracy:mean"] == pytest.approx(run.summary["test_accuracy"]["mean"], abs=1e-5)
