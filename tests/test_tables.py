import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ssm import tables
from ssm.config import resolve
from ssm.errors import UserError
from ssm.tables import compare, final_table, find_runs, paper_row, read_paper, records, to_csv, to_markdown, with_config

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def rows():
    return read_paper(ROOT / "experiments" / "paper.json")


def summary(**other):
    values = {
        "model": "fcn",
        "method": "signed",
        "init": "elus",
        "preset": "default",
        "dataset": "mnist",
        "source": "IDX",
        "epochs": 100,
        "runs": 50,
        "weights": 266200,
        "test_accuracy": {"mean": 0.9758, "q05": 0.974, "q95": 0.9775, "std": 0.001, "values": {"0": 0.9758}},
        "remaining_weights": {
            "mean": 0.0356,
            "q05": 0.035,
            "q95": 0.0363,
            "std": 0.0004,
            "values": {"0": 0.0356},
        },
        "seconds_per_epoch_and_seed": {"mean": 0.5, "median": 0.4125},
        "failed": [],
    }
    return values | other


def put(folder, **other):
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(summary(**other)))
    return folder


def test_the_paper_row_is_found_by_model_method_and_init(rows):
    def mean(**other):
        row = paper_row(summary(**other), rows)
        return None if row is None else row["test_accuracy_percent"]["mean"]

    assert mean() == 97.48
    assert mean(init="he") == 97.12
    assert mean(method="binary") == 97.03
    assert mean(method="baseline", init="elu") == 97.42
    assert mean(method="baseline", init="elus") is None  # twice as wide a distribution as the ELU row's
    assert mean(method="binary", init="he") is None


@pytest.mark.parametrize(
    ("run", "mean"),
    [
        ({"model": "conv2", "dataset": "cifar10"}, 68.37),
        ({"model": "conv8", "dataset": "cifar10", "method": "baseline", "init": "he"}, 73.82),
        ({"model": "conv8", "dataset": "tfds:cifar10"}, 80.91),
        ({"model": "conv8", "dataset": "cifar100"}, None),
        ({"model": "conv8", "dataset": "cifar10", "width": 2.0}, None),
        ({"model": "conv8", "dataset": "cifar10", "preset": "sinn2"}, None),
        ({"model": "conv8", "dataset": "cifar10", "preset": "code"}, 80.91),
        ({"model": "conv8", "dataset": "cifar10", "score_scale": "elus"}, None),
        ({"model": "conv8", "dataset": "cifar10", "method": "binary"}, None),
        ({"model": "resnet20", "dataset": "cifar10", "batch_norm": "frozen"}, 81.68),
        ({"model": "resnet20", "dataset": "cifar10", "batch_norm": "frozen", "width": 1.5}, 83.76),
        ({"model": "resnet20", "dataset": "cifar10", "batch_norm": "frozen", "width": 3.0}, 84.89),
        ({"model": "resnet20", "dataset": "cifar10", "batch_norm": "frozen", "width": 4.0}, None),
        ({"model": "resnet20", "dataset": "cifar100", "batch_norm": "frozen"}, None),
        ({"model": "resnet20", "dataset": "cifar10", "batch_norm": "affine"}, 83.38),
        ({"model": "resnet20", "dataset": "cifar10", "batch_norm": "affine", "width": 1.5}, None),
        ({"model": "resnet20", "dataset": "cifar10", "batch_norm": "statistics"}, None),
        (
            {"model": "resnet20", "dataset": "cifar10", "batch_norm": "affine", "method": "baseline", "init": "elu"}
            | {"width": 2.5},
            87.08,
        ),
        ({"model": "resnet56", "dataset": "cifar100", "batch_norm": "frozen"}, 60.01),
        ({"model": "resnet56", "dataset": "cifar100", "batch_norm": "affine"}, 64.24),
        ({"model": "resnet56", "dataset": "cifar10", "batch_norm": "frozen"}, None),
        ({"model": "resnet110", "dataset": "cifar100", "batch_norm": "frozen", "projections": 2}, 46.42),
        ({"model": "resnet110", "dataset": "cifar100", "batch_norm": "frozen", "projections": 1}, None),
        ({"model": "resnet110", "dataset": "cifar100", "batch_norm": "affine", "projections": 2}, 53.67),
        (
            {"model": "resnet110", "dataset": "cifar100", "batch_norm": "affine", "method": "baseline", "init": "elu"},
            62.7,
        ),
        ({"score_scale": "elus"}, 97.36),
        ({"width": 2.0}, None),
        ({"dataset": "fashion_mnist"}, None),
        ({"preset": "sinn1"}, None),
    ],
    ids=str,
)
def test_a_run_finds_its_own_row_or_none(rows, run, mean):
    row = paper_row(summary(**run), rows)
    assert (None if row is None else row["test_accuracy_percent"]["mean"]) == mean
    # The table tells them apart, too.
    assert (compare(summary(**run), rows)["paper_accuracy_mean"]) == mean


def test_each_preset_of_the_paper_meets_the_papers_rows(rows):
    ours = {"signed_supermask": "signed", "binary_supermask": "binary", "baseline": "baseline"}
    for row in rows:
        dataset, method = row["dataset"], ours[row["method"]]
        options = {"init": row["init"], "width": float(row.get("width", 1))}
        if row["model"].startswith("resnet") and method != "baseline":
            options["batch_norm"] = row["batch_norm"]
        if method != "baseline":
            options["score_scale"] = row.get("score_scale", "xavier")
        named = {"model": row["model"], "method": method, "preset": "paper", "dataset": dataset}
        config = resolve(**named, samples=50_000, overrides=options).as_dict()
        found = paper_row(with_config(summary(**named, init=config["init"]), config), rows)
        assert found is not None
        assert found["test_accuracy_percent"]["mean"] == row["test_accuracy_percent"]["mean"]


def test_runs_published_before_there_were_convolutional_nets_are_read(rows):
    found = records(find_runs([ROOT / "experiments" / "results"]), rows)
    old = [record for record in found if record["runs"] is not None and record["model"] == "fcn"]
    assert len(old) >= 8
    assert all(record["paper_accuracy_mean"] is not None for record in old)


def test_the_configuration_beside_a_summary_is_read(rows, tmp_path):
    folder = put(tmp_path / "wide", model="resnet20", dataset="cifar10")
    config = {"width": 2.0, "batch_norm": "affine", "projections": 1, "score_scale": "xavier", "epochs": 3}
    (folder / "config.json").write_text(json.dumps(config))
    (record,) = (record for record in records(find_runs([tmp_path]), rows) if record["runs"])
    assert (record["width"], record["batch_norm"], record["paper_accuracy_mean"]) == (2.0, "affine", None)
    (folder / "config.json").write_text("[]")
    with pytest.raises(UserError, match=r"config\.json is damaged"):
        find_runs([tmp_path])


def test_what_is_unusual_about_a_net_is_said(rows):
    wide = summary(model="resnet20", dataset="cifar10", batch_norm="affine", width=1.5)
    assert "| resnet20 x1.5 | signed + BN | elus | default | cifar10 |" in to_markdown([compare(wide, rows)])
    deep = summary(model="resnet110", dataset="cifar100", batch_norm="frozen", projections=2, score_scale="elus")
    text = final_table(deep, rows)
    assert text.startswith("resnet110 (2 projections) signed elus/elus, preset default, cifar100")
    assert "The paper has no row for this configuration." in text
    listed = to_markdown(records({}, rows, models=("resnet20",)))
    assert "| resnet20 x2.5 | baseline | elu |  | cifar10 |" in listed
    assert "| resnet20 x2.5 | signed | elus |  | cifar10 |" in listed
    assert "| resnet20 | signed + BN | elus |  | cifar10 |" in listed
    assert len(records({}, rows, models=("resnet20",))) == 11
    assert [record["paper_accuracy_mean"] for record in records({}, rows, models=("resnet110",))] == [
        62.7,
        46.42,
        53.67,
    ]


def test_a_run_beside_its_row(rows):
    record = compare(summary(), rows, name="fcn-signed-elus-0123456789")
    assert record["accuracy_mean"] == pytest.approx(97.58)
    assert record["paper_accuracy_mean"] == 97.48
    assert record["accuracy_difference"] == pytest.approx(0.10)
    # t = 0.1 / sqrt(0.1^2 / 50 + 0.12159^2 / 50) = 4.49 at 94.5 degrees of freedom.
    assert record["accuracy_p"] == pytest.approx(2e-5, rel=0.1)
    assert record["remaining_difference"] == pytest.approx(-0.21)
    assert record["seconds"] == 0.4125
    assert record["paper_seconds"] == 1.27


def test_without_a_known_spread_there_is_a_difference_but_no_p(rows):
    record = compare(summary(method="binary"), rows)
    assert record["accuracy_difference"] == pytest.approx(97.58 - 97.03)
    assert record["accuracy_p"] is None
    one = summary(runs=1, test_accuracy={"mean": 0.97, "q05": 0.97, "q95": 0.97, "std": None, "values": {"0": 0.97}})
    assert compare(one, rows)["accuracy_p"] is None


def test_figures_from_another_data_set_are_not_subtracted(rows):
    record = compare(summary(dataset="mnist5k"), rows)
    assert record["paper_accuracy_mean"] == 97.48
    assert record["accuracy_difference"] is None
    assert record["accuracy_p"] is None


def test_all_rows_of_the_papers_tables_are_listed_once(rows):
    found = records({}, rows)
    assert [(record["method"], record["init"], record["paper_accuracy_mean"]) for record in found] == [
        ("baseline", "he", 97.4),
        ("baseline", "elu", 97.42),
        ("baseline", "xavier", 97.43),
        ("signed", "he", 97.12),
        ("signed", "elus", 97.48),
        ("signed", "xavier", 96.89),
        ("binary", "elus", 97.03),
    ]
    assert all(record["runs"] is None for record in found)
    assert len(records({}, rows, models=("conv2",))) == 6


def test_runs_stand_where_the_papers_rows_do(rows):
    runs = {
        "a": summary(method="binary", init="he"),
        "b": summary(preset="paper"),
        "c": summary(dataset="mnist5k", init="he"),
        "d": summary(),
    }
    found = records(runs, rows)
    assert [(record["method"], record["init"], record["runs"], record["run"]) for record in found[3:]] == [
        ("signed", "he", None, None),
        ("signed", "he", 50, "c"),
        ("signed", "elus", 50, "b"),
        ("signed", "elus", 50, "d"),
        ("signed", "xavier", None, None),
        ("binary", "elus", None, None),
        ("binary", "he", 50, "a"),
    ]


def test_markdown(rows):
    lines = to_markdown(records({"name": summary(failed=[{"seed": 3, "epoch": 7}])}, rows)).splitlines()
    assert lines[6] == (
        "| fcn | signed | elus | default | mnist | 100 | 50 (+1 failed) "
        "| 97.58 [97.40, 97.75] | 97.48 [97.30, 97.70] | +0.10 | <0.001 "
        "| 3.56 [3.50, 3.63] | 3.77 [3.70, 3.80] | -0.21 | <0.001 | 0.41 | 1.27 | name |"
    )
    assert lines[2].startswith("| fcn | baseline | he |  | mnist |  | not run |  | 97.40 [97.30, 97.50] |")
    assert len({line.count("|") for line in lines[:9]}) == 1
    assert "estimate" in lines[-2]


def test_csv(rows):
    read = list(csv.DictReader(io.StringIO(to_csv(records({"name": summary()}, rows)))))
    assert len(read) == 7
    assert read[4]["accuracy_q05"] == "97.39999999999999" or float(read[4]["accuracy_q05"]) == pytest.approx(97.4)
    assert read[4]["runs"] == "50"
    assert read[0]["runs"] == "" and read[0]["paper_accuracy_mean"] == "97.4"


def test_final_table(rows):
    assert final_table(summary(), rows) == (
        "fcn signed elus, preset default, mnist, 266,200 weights: 50 seeds, 100 epochs\n"
        "                     mean [5 %, 95 %]      paper (50 runs, mnist)  difference  p\n"
        "test accuracy %      97.58 [97.40, 97.75]  97.48 [97.30, 97.70]    +0.10       <0.001\n"
        "remaining weights %  3.56 [3.50, 3.63]     3.77 [3.70, 3.80]       -0.21       <0.001\n"
        "s / epoch / seed     0.41                  1.27\n"
        "p: Welch's t-test; the paper's spread is an estimate from its printed quantiles.\n"
    )


def test_final_table_says_what_is_not_comparable(rows):
    text = final_table(summary(dataset="mnist5k", failed=[{"seed": 3, "epoch": 7}]), rows)
    assert "The paper's row is about mnist: its figures are not comparable to these." in text
    assert "Seed 3 was set aside in epoch 7 and is left out: it turned non-finite." in text
    assert "Welch" not in text
    assert "no row for this configuration" in final_table(summary(init="formula"), rows)
    nothing = {"mean": None, "q05": None, "q95": None, "std": None, "values": {}}
    empty = summary(runs=0, test_accuracy=nothing, remaining_weights=nothing)
    assert ": 0 seeds" in final_table(empty, rows)


def test_runs_are_found_in_folders_and_as_folders(tmp_path):
    put(tmp_path / "results" / "one", runs=50)
    put(tmp_path / "results" / "two", runs=5)
    (tmp_path / "results" / "unfinished").mkdir()
    (tmp_path / "results" / "README.md").write_text("")
    put(tmp_path / "runs" / "two", runs=50)
    found = find_runs([tmp_path / "results", tmp_path / "runs" / "two"])
    assert {name: one["runs"] for name, one in found.items()} == {"one": 50, "two": 50}


def test_folders_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(UserError, match="absent cannot be read"):
        find_runs([tmp_path / "absent"])
    with pytest.raises(UserError, match="holds no run with finished seeds"):
        find_runs([tmp_path])
    (tmp_path / "paper.json").write_text('{"rows": [{}]}')
    with pytest.raises(UserError, match=r"paper\.json is damaged"):
        read_paper(tmp_path / "paper.json")


def table(*arguments, cwd):
    return subprocess.run(
        [sys.executable, str(ROOT / "experiments" / "table.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=cwd,
        check=False,
    )


def test_the_program_prints_the_table(tmp_path):
    put(tmp_path / "runs" / "mine")
    done = table(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "| mine |" in done.stdout
    assert done.stdout.rstrip().endswith(tables.NOTE.splitlines()[-1])
    done = table("runs/mine", "--format", "csv", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("model,method,init,preset,dataset,epochs,runs,failed,accuracy_mean,")


def test_the_program_says_what_is_wrong(tmp_path):
    done = table("absent", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "table.py: absent cannot be read: No such file or directory\n"
    folder = put(tmp_path / "runs" / "mine")
    (folder / "summary.json").write_text("{")
    done = table(cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "summary.json is damaged" in done.stderr
