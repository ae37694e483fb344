"""The recipes beside `--preset=best` as a user runs them, on few digits of a narrow net."""

import csv

import pytest

from tests.support.programs import Place

FEW = ("--dataset=mnist5k", "--width=0.05", "--epochs=1", "--seeds=2", "--rows=18:21")
COMMAND = ("beyond.py", *FEW, "--out=runs")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("beyond")
    return Place(folder, folder)


@pytest.mark.slow
def test_the_named_rows_are_trained_the_rest_is_not_run_and_nothing_is_trained_twice(place):
    ran = place.program(*COMMAND)
    assert ran.returncode == 0, ran.stderr
    with (place.here / "runs" / "tables" / "beyond.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [number for number, row in enumerate(rows) if row["runs"] == "2"] == [18, 19, 20]
    assert [row["method"] for row in rows[18:21]] == ["signed", "baseline", "signed"]
    assert "not run" in ran.stdout
    again = place.program(*COMMAND)
    assert again.returncode == 0 and "epoch 1/1" not in again.stdout
    assert again.stdout.split("results:")[1] == ran.stdout.split("results:")[1]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--rows=3", "give the first"),
        ("--rows=a:b", "give the first"),
        ("--rows=90:", "no row"),
        ("--seeds=0", "--seeds=0: give at least 1"),
    ],
)
def test_what_cannot_be_run_is_one_message(place, option, message):
    assert message in place.refusal("beyond.py", option)
