import pytest

from paper.tables import compare, final_table, records, row_records
from paper.tables.cells import epochs, interval, net, p, preset, rounded
from paper.tables.figures import ACCURACY
from paper.tables.printed import decimals, paper_row, select, with_config
from ssm.recipes.config import resolve
from ssm.recipes.presets import recipe
from tests.support.summaries import summary


def test_what_is_unusual_about_a_net_is_said(rows):
    wide = summary(model="resnet20", dataset="cifar10", batch_norm="affine", width=1.5)
    assert net(compare(wide, rows)) == ["resnet20 x1.5", "signed + BN", "elus"]
    uniform = summary(init="he", weight_distribution="uniform")
    assert net(compare(uniform, rows)) == ["fcn", "signed", "he (uniform)"]
    deep = summary(model="resnet110", dataset="cifar100", batch_norm="frozen", projections=2, score_scale="elus")
    text = final_table(deep, rows)
    assert text.startswith("resnet110 (2 projections) signed elus/elus, preset default, cifar100")
    assert "The paper has no row for this configuration." in text
    listed = [net(record) for record in records({}, rows, models=("resnet20",))]
    assert ["resnet20 x2.5", "baseline", "elu"] in listed
    assert ["resnet20 x2.5", "signed", "elus"] in listed
    assert ["resnet20", "signed + BN", "elus"] in listed
    assert len(listed) == 11
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
    # The paper's 97.3 and 97.7 of 50 runs: standard deviation 0.4 / 3.1089; t = 0.1 / sqrt(0.1^2 / 50 + 0.1287^2 / 50).
    assert record["accuracy_p"] == pytest.approx(3.65e-5, rel=0.01)
    # The mean is 97.475 to 97.485, the quantiles are up to 0.1 closer together or further apart.
    assert record["accuracy_p_least"] == pytest.approx(5.97e-7, rel=0.01)
    assert record["accuracy_p_most"] == pytest.approx(6.48e-4, rel=0.01)
    assert p(record, ACCURACY) == "<0.001"
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


@pytest.mark.parametrize(
    ("low", "high", "runs", "overlap"),
    [
        (0.974, 0.9775, 50, "yes"),
        (0.971, 0.9736, 50, "yes"),  # the paper's begins at 97.3, that is 97.25 to 97.35
        (0.971, 0.9734, 50, "undetermined"),
        (0.971, 0.97249, 50, "no"),
        (0.9774, 0.98, 50, "undetermined"),
        (0.9776, 0.98, 50, "no"),
        (0.97, 0.98, 50, "yes"),
        (0.975, 0.975, 1, "unknown"),  # one seed has no interval
    ],
)
def test_intervals_overlap_where_they_have_a_point_in_common(rows, low, high, runs, overlap):
    ours = {"mean": 0.975, "q05": low, "q95": high, "std": 0.001, "values": {"0": 0.975}}
    assert compare(summary(test_accuracy=ours, runs=runs), rows)["accuracy_overlap"] == overlap


def test_a_run_of_another_recipe_is_not_tested_against_the_paper(rows):
    for other in (summary(epochs=12), summary(changed=["loss"])):
        record = compare(other, rows)
        assert record["accuracy_difference"] == pytest.approx(0.10)
        assert record["accuracy_p"] is None and record["accuracy_overlap"] is None
    kept = {"model": "fcn", "method": "signed", "init": "he", "preset": "paper", "dataset": "mnist"}
    assert with_config(summary(), kept | recipe("fcn", "signed", "paper", "mnist"))["changed"] == []
    for name, usual, other in (
        ("factor", 3**0.5, 2.0),
        ("decay_steps", 4690, 2345),
    ):  # by the recipe's own names others
        own = kept | {"init": "elus", "batch_size": 128}
        assert with_config(summary(), own | {name: usual})["changed"] == []
        assert with_config(summary(), own | {name: other})["changed"] == [name]
    own = kept | recipe("fcn", "signed", "paper", "mnist") | {"epochs": 3, "loss": "clipped", "init": "xavier"}
    assert with_config(summary(), own)["changed"] == ["epochs", "loss"]  # the initialisation names the row


@pytest.mark.parametrize(
    ("model", "method", "dataset", "samples"),
    [
        ("fcn", "zhou", "mnist", 60_000),
        ("resnet18", "edge_popup", "cifar10", 50_000),
        ("resnet20", "ttq", "cifar10", 50_000),
    ],
)
def test_what_follows_from_a_published_recipe_is_no_change_of_it(model, method, dataset, samples):
    named = {"model": model, "method": method, "preset": "published", "dataset": dataset}
    config = resolve(**named, samples=samples, overrides={}).as_dict()
    assert with_config(summary(), config)["changed"] == []
    assert with_config(summary(), config | {"method_options": "exempt=Dense_0"})["changed"] == ["method_options"]


def test_p_is_a_range_where_rounding_matters(rows):
    ours = {"mean": 0.9755, "q05": 0.974, "q95": 0.977, "std": 0.002, "values": {"0": 0.9755}}
    assert (
        p(compare(summary(test_accuracy=ours), rows), ACCURACY) == "0.020 to 0.077"
    )  # t of 0.075 and 0.065, and spreads of 0.3 and 0.5, by hand


def test_p_of_two_seeds_is_a_range_too(rows):
    ours = {"mean": 0.9715, "q05": 0.9706, "q95": 0.9724, "std": 0.0014, "values": {"0": 0.9705, "1": 0.9725}}
    record = compare(summary(test_accuracy=ours, runs=2), rows)
    # By scipy: a difference of 0.335 and a paper's spread of 0.5 (1.11 degrees of freedom), and 0.325 and 0.3 (1.04).
    assert record["accuracy_p_least"] == pytest.approx(0.16761, abs=1e-5)
    assert record["accuracy_p_most"] == pytest.approx(0.18249, abs=1e-5)


def test_p_where_neither_side_has_a_spread(rows):
    ours = {"mean": 0.972, "q05": 0.972, "q95": 0.972, "std": 0.0, "values": {"0": 0.972}}
    record = compare(summary(method="baseline", init="xavier", test_accuracy=ours, epochs=50), rows)
    assert record["accuracy_p_least"] == 0 and record["accuracy_p"] > 0  # the paper's 97.4 and 97.5 may both be 97.45
    assert p(record, ACCURACY).startswith("<0.001")


def test_halves_are_rounded_up():
    assert [rounded(value, 2) for value in (96.975, 96.965, 96.9749, 100 * 0.96975, 3.0)] == [
        "96.98",
        "96.97",
        "96.97",
        "96.98",
        "3.00",
    ]
    assert [rounded(value, 2, "+") for value in (0.125, -0.125, 0.0)] == ["+0.13", "-0.13", "+0.00"]


def test_decimals_of_printed_numbers():
    assert [decimals(numbers) for numbers in ((97.3, 97.0), (0.58, 0.6), (100, None), (0.9083,))] == [1, 2, 0, 4]


def test_whether_intervals_overlap_is_unknown_or_no_question(rows):
    assert compare(summary(method="binary"), rows)["accuracy_overlap"] == "unknown"  # none is printed
    assert compare(summary(dataset="mnist5k"), rows)["accuracy_overlap"] is None
    assert compare(summary(init="paper_formula"), rows)["accuracy_overlap"] is None
    assert {record["accuracy_overlap"] for record in records({}, rows)} == {None}


def test_every_run_of_a_row_is_listed_and_the_papers_preset_first(rows):
    wanted = select(rows, [{"model": "fcn", "method": "signed", "init": init} for init in ("he", "elus")])
    runs = {"a": summary(), "b": summary(preset="paper"), "c": summary(dataset="mnist5k"), "d": summary(preset="sinn1")}
    found = row_records(runs, wanted)
    assert [(record["init"], record["status"], record["run"]) for record in found] == [
        ("he", "not run", None),
        ("elus", "run", "b"),
        ("elus", "run", "a"),
    ]
    assert found[0]["paper_accuracy_mean"] == 97.12 and found[0]["accuracy_mean"] is None


def test_what_is_said_of_a_short_run_and_of_a_single_seed(rows):
    record = compare(summary(epochs=12, runs=1), rows)
    assert epochs(record) == "12 of 100"
    assert interval(record, ACCURACY) == "97.58"
    assert interval(record, ACCURACY, paper=True) == "97.48 [97.3, 97.7]"
    assert epochs(compare(summary(), rows)) == "100"
    assert epochs(records({}, rows)[0]) == ""


def test_an_order_for_each_seed_is_the_same_recipe_and_is_tested(rows):
    kept = {"model": "fcn", "method": "signed", "init": "elus", "preset": "paper", "dataset": "mnist"}
    own = with_config(summary(preset="paper"), kept | {"order": "fixed_by_seed"})
    record = compare(own, rows)
    assert preset(record) == "paper, an order for each seed" and record["accuracy_p"] is not None
    other = with_config(summary(preset="paper"), kept | {"order": "fixed_by_seed", "loss": "clipped"})
    assert preset(compare(other, rows)) == "paper, an order for each seed, other loss"
    for preset_name, order in (("paper", "reshuffle"), ("default", "fixed_by_seed")):  # other recipes
        record = compare(with_config(summary(), kept | {"preset": preset_name, "order": order}), rows)
        assert record["changed"] == ["order"] and record["accuracy_p"] is None


@pytest.mark.parametrize(("name", "value"), [("density", 0.02), ("validation", 5000), ("activation", "relu")])
def test_a_run_of_another_kind_has_no_row(rows, name, value):
    own = {"model": "fcn", "method": "signed", "init": "elus", "dataset": "mnist", "preset": "default"}
    assert paper_row(with_config(own, {}), rows) is not None
    assert paper_row(with_config(own, {name: value}), rows) is None


def test_a_run_that_is_not_its_preset_says_in_what_and_epochs_have_a_column_of_their_own(rows):
    assert (
        preset(compare(summary(changed=["epochs", "decay_steps", "loss"]), rows)) == "default, other decay steps, loss"
    )
    assert preset(compare(summary(changed=["epochs"]), rows)) == preset(compare(summary(), rows)) == "default"
