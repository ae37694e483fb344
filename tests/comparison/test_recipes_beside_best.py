"""The rows beside `--preset=best`: what they change is what `best` changes."""

from comparison.recipes import BEST, PARTS, recipes
from ssm.recipes.presets import recipe


def test_all_parts_together_are_best():
    best, default = (recipe("fcn", "signed", preset, "mnist") for preset in ("best", "default"))
    changed = {name for name in best if best[name] != default[name]}
    assert changed == {"elus_factor", *(option for options in PARTS.values() for option in options)} - {"factor"}


def test_a_part_is_added_with_best_s_value_and_taken_out_with_default_s():
    rows = {(row.part, row.name): row for row in recipes()}
    assert rows["alone", "default, and 200 epochs"].options == {"epochs": 200}
    assert rows["last", "best without 200 epochs"].options == {"epochs": 100}
    assert rows["alone", "default, and shifts"].preset == "default"
    assert rows["last", "best without shifts"].preset == "best"


def test_every_part_is_alone_and_last_and_two_points_have_ten_seeds():
    rows = recipes()
    assert [sum(row.part == part for row in rows) for part in ("alone", "last")] == [len(PARTS)] * 2
    assert [row.seeds for row in rows if row.name == BEST].count(10) == 2
    assert [row.method for row in rows].count("baseline") == 1
