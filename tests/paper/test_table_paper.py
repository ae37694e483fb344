import json
from pathlib import Path

import pytest

from paper.tables import compare, find_runs, paper_row, read_paper, read_printed, records, with_config
from paper.tables.printed import select
from ssm.errors import UserError
from ssm.recipes.config import resolve
from tests.support.summaries import put, summary

ROOT = Path(__file__).resolve().parents[2]


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
        ({"init": "he", "weight_distribution": "uniform"}, 96.77),
        ({"weight_distribution": "normal"}, None),
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
            options["weight_distribution"] = row.get("weight_distribution", "signed_constant")
        named = {"model": row["model"], "method": method, "preset": "paper", "dataset": dataset}
        config = resolve(**named, samples=50_000, overrides=options).as_dict()
        found = paper_row(with_config(summary(**named, init=config["init"]), config), rows)
        assert found is not None
        assert found["test_accuracy_percent"]["mean"] == row["test_accuracy_percent"]["mean"]


def test_runs_published_before_there_were_convolutional_nets_are_read(rows):
    found = records(find_runs([ROOT / "experiments" / "results"]), rows)
    old = [record for record in found if record["runs"] is not None and record["model"] == "fcn"]
    assert len(old) >= 8
    with_row = [record for record in old if record["preset"] not in ("sinn1", "sinn2")]  # which the paper only draws
    assert all(record["paper_accuracy_mean"] is not None for record in with_row)


def test_the_configuration_beside_a_summary_is_read(rows, tmp_path):
    folder = put(tmp_path / "wide", model="resnet20", dataset="cifar10")
    config = {"width": 2.0, "batch_norm": "affine", "projections": 1, "score_scale": "xavier", "epochs": 3}
    (folder / "config.json").write_text(json.dumps(config))
    (record,) = (record for record in records(find_runs([tmp_path]), rows) if record["runs"])
    assert (record["width"], record["batch_norm"], record["paper_accuracy_mean"]) == (2.0, "affine", None)
    (folder / "config.json").write_text("[]")
    with pytest.raises(UserError, match=r"config\.json is damaged"):
        find_runs([tmp_path])


def test_settings_that_a_run_is_older_than_are_the_usual_ones_of_its_method():
    assert with_config(summary(), {})["weight_distribution"] == "signed_constant"
    assert (
        with_config(summary(method="baseline"), {"width": 2.0}).items()
        >= {
            "weight_distribution": "uniform",
            "width": 2.0,
            "batch_norm": "none",
            "projections": 1,
            "score_scale": "xavier",
        }.items()
    )


def test_a_row_is_selected_by_what_is_said_of_it(rows):
    wanted = [
        {"model": "resnet20", "method": "signed", "init": "elus", "batch_norm": "frozen", "width": 2},
        {"model": "fcn", "method": "signed", "init": "he"},
    ]
    assert [row["test_accuracy_percent"]["mean"] for row in select(rows, wanted)] == [84.42, 97.12]
    with pytest.raises(UserError, match="it has no row of"):
        select(rows, [{"model": "fcn", "method": "signed", "init": "elus", "width": 3}])


def test_a_file_without_all_sections_is_damaged(tmp_path):
    (tmp_path / "paper.json").write_text('{"rows": [], "weights": {}, "sinn": {}, "literature_cifar10": []}')
    assert read_paper(tmp_path / "paper.json") == []
    with pytest.raises(UserError, match="is damaged: it has no hyperparameters, architectures, supermask_literature"):
        read_printed(tmp_path / "paper.json")
