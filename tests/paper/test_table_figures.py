import numpy as np
import pytest

from paper.tables import find_runs
from paper.tables.figures import compressed, extra_time, final_loss, paired
from ssm.errors import UserError
from tests.support.summaries import put, summary

MACHINE = {"backend": "cpu", "device": "cpu", "devices": 1, "processor": "made up", "git_commit": "abc"}


def only(folder):
    (found,) = find_runs([folder]).values()
    return found


def test_a_test_loss_is_that_of_each_seeds_last_epoch(tmp_path):
    folder = put(tmp_path / "run", losses={0: [3.0, 1.0], 1: [3.0, 2.0, 2.5], 7: [9.0, 0.5]})
    found = final_loss(only(folder))
    assert found.statistics is not None
    # 0.5, 1 and 2.5: quantiles at a tenth of the way from each end.
    assert found.statistics["mean"] == pytest.approx(4 / 3)
    assert (found.statistics["q05"], found.statistics["q95"]) == pytest.approx((0.55, 2.35))
    assert found.statistics["std"] == pytest.approx(np.std([0.5, 1, 2.5], ddof=1))


def test_a_failed_seed_has_no_part_in_the_test_loss(tmp_path):
    folder = put(tmp_path / "run", losses={0: [1.0], 1: [2.0]})
    run = put(tmp_path / "other", losses={0: [1.0]}, failed=[{"seed": 1, "epoch": 1}])
    (run / "history.csv").write_text((folder / "history.csv").read_text())
    assert final_loss(only(run)).statistics == {"mean": 1.0, "q05": 1.0, "q95": 1.0, "std": None}


def test_a_published_run_has_its_test_loss_in_the_curve(tmp_path):
    folder = put(tmp_path / "run")
    assert final_loss(only(folder)).statistics is None
    head = "epoch,seeds,test_loss:mean,test_loss:q05,test_loss:q95\n"
    (folder / "curve.csv").write_text(head + "1,1,2.5,2.4,2.6\n2,1,0.5,0.4,0.6\n")
    assert final_loss(only(folder)).statistics == {"mean": 0.5, "q05": 0.4, "q95": 0.6, "std": None}
    # A seed that ended earlier has no part in the last row.
    (folder / "curve.csv").write_text(head + "1,2,2.5,2.4,2.6\n")
    assert final_loss(only(folder)) == (None, "unknown")
    (folder / "curve.csv").write_text("epoch,seeds,test_accuracy:mean\n1,1,0.5\n")
    assert final_loss(only(folder)) == (None, "unknown")
    (folder / "curve.csv").write_text(head + "1,1,x,2.4,2.6\n")
    with pytest.raises(UserError, match=r"curve\.csv is damaged"):
        final_loss(only(folder))


def test_a_summary_alone_says_neither_loss_nor_compression():
    assert final_loss(summary()) == (None, "unknown")
    assert compressed(summary()) == (None, "no masks kept")


def test_compression_is_the_mean_over_the_masks_that_were_kept(tmp_path):
    few, none = np.zeros((2, 100), np.int8), np.zeros((2, 100), np.int8)
    few[0, :5] = -1
    folder = put(
        tmp_path / "run",
        losses={0: [1.0], 1: [1.0], 2: [1.0]},
        masks={0: {"Dense_0": few}, 2: {"Dense_0": none}},
    )
    found = compressed(only(folder)).statistics
    assert found is not None
    # Dense 4 * 200 bytes; csr 8 for each value and 4 * (2 + 1) for the rows.
    assert found["mean"] == pytest.approx((1 - 52 / 800 + 1 - 12 / 800) / 2)


def runs(tmp_path, **baseline):
    """Return a masked run of 0.6 s and a baseline of 0.5 s on one machine, `baseline` being what is different of it."""
    time = {"mean": 1.0, "median": 0.5}
    other = {"method": "baseline", "init": "elu", "machine": MACHINE, "seconds_per_epoch_and_seed": time}
    put(tmp_path / "dense", **(other | baseline))
    put(tmp_path / "masked", machine=MACHINE, seconds_per_epoch_and_seed={"mean": 1.0, "median": 0.6})
    return paired(find_runs([tmp_path]))


def test_additional_time_is_over_the_baselines_of_the_same_machine(tmp_path):
    found = runs(tmp_path, machine=MACHINE | {"git_commit": "another"})
    assert extra_time(found["masked"]).statistics == pytest.approx(
        {"mean": 0.2, "q05": None, "q95": None, "std": None}, nan_ok=True
    )
    assert "baseline" not in found["dense"]


@pytest.mark.parametrize(
    "other",
    [
        {"machine": MACHINE | {"processor": "another"}},
        {"machine": MACHINE | {"devices": 2}},
        {"machine": None},
        {"machine": [{"environment": MACHINE | {"device": name}, "seeds": [0]} for name in ("a", "cpu")]},
        {"model": "conv2"},
        {"dataset": "fashion_mnist"},
        {"config": {"width": 2.0}},
        {"config": {"batch_size": 64}},
        {"method": "signed", "init": "he"},
    ],
    ids=str,
)
def test_without_such_a_baseline_the_additional_time_is_not_known(tmp_path, other):
    found = runs(tmp_path, **other)
    assert extra_time(found["masked"]) == (None, "no baseline on this machine")


def test_an_environment_that_no_seed_came_from_does_not_count(tmp_path):
    entries = [{"environment": MACHINE, "seeds": [0]}, {"environment": MACHINE | {"devices": 9}, "seeds": []}]
    assert extra_time(runs(tmp_path, machine=entries)["masked"]).statistics is not None


def test_without_times_the_additional_one_is_not_known(tmp_path):
    found = runs(tmp_path, seconds_per_epoch_and_seed={"mean": None, "median": None})
    assert extra_time(found["masked"]) == (None, "unknown")


def test_a_damaged_environment_is_named(tmp_path):
    put(tmp_path / "run", machine=[{"seeds": [0]}])
    with pytest.raises(UserError, match=r"environment\.json is damaged"):
        paired(find_runs([tmp_path]))
