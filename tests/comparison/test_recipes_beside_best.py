"""The rows beside `--preset=best`: what they change is what `best` changes."""

import pytest

from comparison.recipes import BEST, DEFAULT, DENSE, PARTS, recipes
from ssm.recipes.change import CONV_NETS
from ssm.recipes.presets import recipe


def changed(model, dataset):
    best, default = (recipe(model, "signed", preset, dataset) for preset in ("best", "default"))
    return {"factor" if name == "elus_factor" else name for name in best if best[name] != default[name]}


def test_all_parts_together_are_best():
    assert changed("fcn", "mnist") == {option for options in PARTS.values() for option in options}


@pytest.mark.parametrize("model", CONV_NETS)
def test_all_parts_and_the_epochs_together_are_best_of_a_conv_net(model):
    without = [row for row in recipes(model) if row.part == "last"]
    assert changed(model, "cifar10") == {"epochs", *(option for row in without for option in row.options)}


@pytest.mark.parametrize("model", CONV_NETS)
def test_a_conv_nets_rows_have_one_seed_and_the_epochs_of_best(model):
    rows = recipes(model)
    assert [row.name for row in rows[:3]] == [BEST, DEFAULT, DENSE]
    assert {(row.seeds, row.options["epochs"]) for row in rows} == {(1, 20)}
    assert len({(*sorted(row.options.items()), row.preset, row.method) for row in rows}) == len(rows)


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
