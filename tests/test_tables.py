import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ssm import tables
from ssm.errors import UserError
from ssm.tables import compare, final_table, find_runs, paper_row, read_paper, records, to_csv, to_markdown

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
    assert "Seed 3 turned non-finite in epoch 7 and is left out." in text
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
