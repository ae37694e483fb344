import dataclasses

import pytest

from ssm.errors import LeftOut, UserError
from ssm.files import read_json
from ssm.recipes.config import Config
from ssm.runs.names import run_name
from ssm.runs.job import recipe_job
from ssm.runs.run import RunOptions, run_jobs
from ssm.runs.saving import Saving
from ssm.runs.sweep import by_point, grid, pareto, programs, records
from tests.support.made_runs import make_run
from tests.support.runs import Crash, content, crashing, run_config, same_content, short


def run_together(configs, dataset, seeds, *, out, folder, **options):
    jobs = [recipe_job(config, dataset) for config in configs]
    return run_jobs(jobs, seeds, out=out, folder=folder, options=RunOptions(**options))


def test_a_grid_has_every_combination_the_last_option_fastest():
    assert grid({"a": [1, 2], "b": ["x", "y"]}) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    with pytest.raises(UserError, match="--vary a= names no value"):
        grid({"a": []})


def test_what_is_an_argument_of_a_program_shares_it(digits):
    def point(**overrides):
        return short(digits, **overrides)

    together = [
        point(learning_rate=0.1),
        point(weight_decay=1e-4),
        point(threshold="absolute:0.02"),
        point(schedule="plateau", patience=3),
        point(decay_rate=0.9, staircase=True),
    ]
    apart = [point(threshold="quantile:0.5"), point(threshold="0"), point(momentum=0.5), point(factor=1.0)]
    assert programs([*together, *apart, together[0]]) == [together, *([one] for one in apart)]


POINTS = ({"learning_rate": 0.05, "threshold": "0.01"}, {"learning_rate": 0.02, "threshold": "0.015"})
SEEDS = [0, 4]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["absolute", pytest.param("quantile", marks=pytest.mark.slow)])
def test_a_sweeps_runs_are_the_single_ones_bit_for_bit(digits, tmp_path, rule):
    points = POINTS
    if rule == "quantile":
        points = [{"learning_rate": 0.05, "threshold": f"quantile:{density}"} for density in (0.3, 0.15)]
    configs = [short(digits, **point) for point in points]
    assert len(programs(configs)) == 1
    logged = []
    how = {"out": tmp_path / "sweep", "folder": tmp_path / "sweep" / "sweep-0"}
    with pytest.raises(Crash):  # and a crash in between changes nothing
        run_together(configs, digits, SEEDS, **how, **crashing(3))
    run_together(configs, digits, SEEDS, **how, log=logged.append)
    assert "resuming 4 seeds after epoch 2" in logged
    single = run_config(configs[1], digits, SEEDS, out=tmp_path / "single")
    swept = dataclasses.replace(single, folder=tmp_path / "sweep" / run_name(configs[1].as_dict()))
    same_content(content(single), content(swept))
    logged.clear()
    run_together(configs, digits, SEEDS, **how, log=logged.append)
    assert logged == []  # all is finished
    rows = records(points, configs, tmp_path / "sweep", [*SEEDS, 9])
    assert [(row["threshold"], row["seed"]) for row in rows] == [
        (point["threshold"], seed) for point in points for seed in SEEDS
    ]
    assert all(0 < row["test_accuracy"] <= 1 and row["failed"] == "" for row in rows)


@pytest.mark.slow
def test_plateaus_are_each_points_own(digits, tmp_path):
    plateau = {"schedule": "plateau", "patience": 1, "min_delta": 0.5, "epochs": 4}
    configs = [short(digits, **plateau, plateau_factor=factor) for factor in (0.5, 0.1)]
    run_together(configs, digits, [0], out=tmp_path, folder=tmp_path / "sweep", saving=Saving(every=2))
    single = run_config(configs[1], digits, [0], out=tmp_path / "single")
    swept = dataclasses.replace(single, folder=tmp_path / run_name(configs[1].as_dict()))
    same_content(content(single), content(swept))


def row(rate, accuracy, remaining, failed=""):
    return {
        "learning_rate": rate,
        "seed": 0,
        "test_accuracy": accuracy,
        "remaining_weights": remaining,
        "failed": failed,
        "run": f"run-{rate}",
    }


def test_points_are_means_over_their_seeds_the_best_first():
    rows = [row(1, 0.5, 0.1), row(1, 0.7, 0.3), row(2, 0.9, 0.5), row(3, None, None, "no weight is left in Dense_0")]
    best, other = by_point(rows, ["learning_rate"])
    assert (best["learning_rate"], best["seeds"], best["run"], best["front"]) == (2, 1, "run-2", True)
    assert (other["test_accuracy"], other["remaining_weights"]) == (pytest.approx(0.6), pytest.approx(0.2))
    assert other["front"] and other["test_accuracy_q05"] == pytest.approx(0.51)


def test_the_front_is_what_nothing_beats_in_both():
    points = [(0.9, 0.5), (0.8, 0.2), (0.7, 0.3), (0.8, 0.2), (0.95, 0.6), (0.8, 0.25)]
    found = pareto([{"test_accuracy": accuracy, "remaining_weights": remaining} for accuracy, remaining in points])
    assert found == [True, True, False, True, True, False]


def test_a_damaged_point_is_left_out_of_the_table_and_named(tmp_path):
    points = [{"momentum": 0.5}, {"momentum": 0.9}]
    folders = [make_run(tmp_path, **point) for point in points]
    configs = [Config(**read_json(folder / "config.json")) for folder in folders]
    (folders[1] / "summary.json").write_text("{")
    with pytest.warns(LeftOut, match=f"{folders[1].name} is left out: .*summary.json is damaged"):
        assert [row["momentum"] for row in records(points, configs, tmp_path, [0, 1])] == [0.5, 0.5]
