"""The comparison of all methods as a user runs it, on few digits of a narrow net."""

import csv
import shutil
from types import SimpleNamespace

import pytest

from ssm.runs.names import read_config
from ssm.runs.reader import read_finished
from tests.support.made_runs import make_run
from tests.support.programs import ROOT, Place
from tests.support.quick import quick

FEW = ("--dataset=mnist5k", "--width=0.05", "--epochs=1", "--seeds=2", "--methods=0,8,24")
COMMAND = ("literature.py", *FEW, "--densities=0.1", "--out=runs", "--tables=tables")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("literature")
    return Place(folder, folder)


@pytest.fixture(scope="module")
def done(place):
    ran = place.program(*COMMAND)
    assert ran.returncode == 0, ran.stderr
    return ran


def rows(place):
    with open(place.here / "tables" / "literature-fcn-a.csv", newline="") as file:
        return {(row["name"], row["asked"]): row for row in csv.DictReader(file)}


@pytest.mark.slow
def test_what_was_named_is_trained_and_the_rest_is_not_run(place, done):
    found = rows(place)
    trained = {name for (name, _), row in found.items() if row["runs"] == "2"}
    assert trained == {"dense", "edge-popup", "LR-Net"}
    assert found["RigL", "0.1"]["runs"] == "0"
    row = found["edge-popup", "0.1"]
    assert float(row["density"]) == pytest.approx(0.1, abs=0.005)
    assert row["layers"].split()[0].startswith("Dense_0=")
    assert int(row["bytes"]) > 0 and found["dense", ""]["bytes"] == str(4 * weights(place))
    draws = found["LR-Net", ""]  # tested by draws: the net of a file is another
    assert 0 < float(draws["file_accuracy"]) < 1 and not row["file_accuracy"]
    assert f"(file: {100 * float(draws['file_accuracy']):.2f})" in done.stdout
    assert "| RigL | 10 |  | not run |" in done.stdout
    assert (place.here / "tables" / "literature-fcn-a-density.png").read_bytes().startswith(b"\x89PNG")


def weights(place):
    from ssm.runs.folder import read_summary

    return read_summary(next(place.here.glob("runs/fcn-baseline-*")))["weights"]


@pytest.mark.slow
def test_the_rate_is_the_best_of_three_on_held_out_images(place, done):
    from ssm.runs.folder import read_summary

    folders = [path.parent for path in place.here.glob("runs/fcn-edge_popup-*/config.json")]
    plain = {folder: read_config(folder / "config.json") for folder in folders}
    searched = {folder: config for folder, config in plain.items() if config["validation"]}
    assert sorted(round(config["learning_rate"], 4) for config in searched.values()) == [0.0333, 0.1, 0.3]
    best = max(searched, key=lambda folder: read_summary(folder)["test_accuracy"]["mean"])
    (final,) = (config for config in plain.values() if not config["validation"])
    assert final["learning_rate"] == searched[best]["learning_rate"]


@pytest.mark.slow
def test_what_is_finished_is_not_trained_again(place, done):
    again = place.program(*COMMAND)
    assert again.returncode == 0, again.stderr
    assert "epoch 1/1" not in again.stdout
    assert again.stdout.split("results:")[1] == done.stdout.split("results:")[1]


def test_a_published_run_with_its_history_is_continued(tmp_path, monkeypatch):
    import literature

    published = make_run(tmp_path / "published", method="rigl", preset="protocol", seeds=2)
    monkeypatch.setattr(literature, "PUBLISHED", tmp_path / "published")
    plan = literature.Plan(literature.Options(out=tmp_path / "runs"))
    config = read_config(published / "config.json")
    plan.runs.take_over(SimpleNamespace(as_dict=lambda: config))
    own = tmp_path / "runs" / published.name
    assert read_finished(own).seeds == [0, 1]
    (own / "summary.json").write_text("mine")
    plan.runs.take_over(SimpleNamespace(as_dict=lambda: config))  # what is there is not written over
    assert (own / "summary.json").read_text() == "mine"


def test_without_a_search_the_rates_are_the_protocol_s(tmp_path):
    import literature

    plan = literature.Plan(literature.Options(dataset="mnist5k", out=tmp_path / "runs", search="off"))
    rates = {entry.name: plan.rate(entry, 0.1) for entry in literature.BLOCKS["a"].entries}
    assert (rates["dense"], rates["RigL"], rates["Zhou's Supermask"]) == (0.05, 0.05, 100)
    dense = literature.BLOCKS["a"].entries[0]
    plan.runs.finished = lambda config, seeds: SimpleNamespace(seeds=[] if config.learning_rate == 0.05 else [0])
    assert plan.rate(dense, None) == pytest.approx(0.05 / 3)  # no seed was left


@pytest.mark.slow
def test_only_the_table_is_written(place, done):
    shutil.rmtree(place.here / "tables")
    ran = place.program(*COMMAND, "--report")
    assert ran.returncode == 0 and (place.here / "tables" / "literature-fcn-a.md").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    quick(
        [
            ("--methods=rigel", "--methods names rigel; known are"),
            ("--densities=abc", "--densities=abc: give shares above 0"),
            ("--densities=0.1,1.5", "--densities=0.1,1.5: give shares above 0"),
            ("--seeds=0", "--seeds=0: give at least 1"),
        ]
    ),
)
def test_what_cannot_be_run_is_one_message(place, option, message):
    assert message in place.refusal("literature.py", option)


def test_a_method_s_own_options_are_in_help_and_typed(place):
    ran = place.program("train.py", "--method=rigl", "--help")
    assert ran.returncode == 0
    assert "--rigl.drop" in ran.stdout and "--granet.drop" not in ran.stdout
    assert "--rigl.drop" not in place.program("train.py", "--help").stdout
    assert "--steered.gain" in place.program("train.py", "--density", "0.02", "--help").stdout
    assert "(default: 0.3, unless the preset has another)" in " ".join(ran.stdout.replace("│", " ").split())
    wrong = place.program("train.py", "--method=rigl", "--rigl.every=often")
    assert wrong.returncode == 2
    wrong = place.refusal("train.py", "--method=rigl", "--rigl.drop=3")
    assert "--rigl.drop must be above 0 and at most 1, got 3.0" in wrong
    wrong = place.refusal("train.py", "--method=rigl", "--rigl.exempt=Dense_0,drop=0.9")
    assert "several layers are Conv_0+Dense_1" in wrong


@pytest.mark.slow
def test_a_density_by_name(place):
    run = ("train.py", "--model=fcn", "--dataset=mnist5k", "--width=0.1", "--epochs=6", "--seeds=1")
    ran = place.program(*run, "--method=rigl", "--density=0.2", "--rigl.every=20")
    assert ran.returncode == 0, ran.stderr
    assert "method_options=every=20,steps=" in ran.stdout.replace(" ", "")
    assert (ROOT / "experiments" / "literature.py").exists()
