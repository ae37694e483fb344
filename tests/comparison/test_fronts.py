"""Fronts of accuracy against density, and the table beside them."""

import csv
import math

import pytest

from comparison.fronts import on_front, record, table, write
from comparison.recipes import BEST, DEFAULT, Recipe
from ssm.runs.reader import read_finished
from tests.support.made_runs import make_run

FRONT = [(0.01, 0.9), (0.1, 0.98)]


@pytest.mark.parametrize(
    ("density", "accuracy"), [(0.01, 0.9), (0.1, 0.98), (math.sqrt(1e-3), 0.94), (0.009, None), (0.2, None)]
)
def test_between_two_points_a_front_is_linear_in_the_logarithm(density, accuracy):
    assert on_front(FRONT, density) == (accuracy if accuracy is None else pytest.approx(accuracy))


def test_no_front_has_no_accuracy():
    assert on_front([], 0.1) is None


@pytest.fixture
def found(tmp_path):
    run = read_finished(make_run(tmp_path, seeds=2))
    return [
        record(Recipe(name=BEST), 1e-3, run),
        record(Recipe(name="one part", part="alone", preset="default"), 5e-4, run),
        record(Recipe(name="another", part="last"), 2e-3, None),
    ]


def test_a_row_stands_beside_the_front_and_one_that_is_missing_is_not_run(found):
    best, part, missing = table(found).splitlines()[2:]
    cells = [cell.strip() for cell in part.split("|")[1:-1]]
    assert cells[0] == "one part" and cells[-3:] == ["+0.00", "", "2"]  # the same run: on the front of best
    assert [cell.strip() for cell in best.split("|")[1:-1]][-3:] == ["", "", "2"]
    assert "| another |  | 0.002 |  | not run |" in missing


def test_a_row_stands_beside_both_fronts_and_a_front_not_beside_itself(tmp_path):
    run = read_finished(make_run(tmp_path, seeds=2))
    lower = record(Recipe(name=DEFAULT, preset="default"), 5e-4, run)
    lower["accuracy"] -= 0.01
    found = [record(Recipe(name=name), 1e-3, run) for name in (BEST, "one part")] + [lower]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]][-3:] for line in table(found).splitlines()[2:]]
    assert lines == [["", "+1.00", "2"], ["+0.00", "+1.00", "2"], ["-1.00", "", "2"]]


def test_the_csv_has_what_the_table_has_not_rounded_and_the_picture_the_fronts(found, tmp_path):
    write([*found, found[0]], tmp_path / "tables", "beyond")
    with (tmp_path / "tables" / "beyond.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    values = read_finished(tmp_path / found[0]["run"]).summary["test_accuracy"]["values"].values()
    assert [float(value) for value in rows[0]["accuracies"].split()] == list(values)
    assert rows[2]["runs"] == "0"
    assert (tmp_path / "tables" / "beyond-density.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "tables" / "beyond.md").read_text() == table([*found, found[0]])


def test_one_point_of_a_recipe_is_no_front_and_there_is_no_picture(found, tmp_path):
    folder = tmp_path / "tables"
    write(found, folder, "beyond-conv2")
    assert sorted(path.name for path in folder.iterdir()) == ["beyond-conv2.csv", "beyond-conv2.md"]


def test_without_any_run_there_is_no_picture(tmp_path):
    write([record(Recipe(name=BEST), 1e-3, None)], tmp_path, "beyond-conv2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beyond-conv2.csv", "beyond-conv2.md"]
