import pytest

from comparison.entries import BLOCK_A, BLOCK_B, BLOCKS, WAYS
from comparison.records import emptied, holm, idle_seconds, known_nets, record, with_differences
from comparison.report import apart, comma_separated, table
from ssm.recipes.literature import LITERATURE
from ssm.runs.folder import open_run
from ssm.runs.reader import read_finished


def test_holm_by_hand():
    # Four tests: 0.01 * 4, 0.015 * 3, 0.03 * 2 raised to no less than the one before, 0.9.
    assert holm([0.01, 0.015, 0.02, 0.9]) == pytest.approx([0.04, 0.045, 0.045, 0.9])
    assert holm([0.4, 0.5]) == pytest.approx([0.8, 0.8])
    assert holm([0.9]) == [0.9] and holm([]) == []


def row(name, accuracies, **more):
    found = {"number": 0, "name": name, "method": "x", "values": "frozen", "asked": None, "runs": len(accuracies)}
    if accuracies:
        found |= {"accuracies": accuracies, "accuracy": sum(accuracies) / len(accuracies), "density": 0.1}
        found |= {"lowest": min(accuracies), "highest": max(accuracies), "failed": 0, "learning_rate": 0.1}
        found |= {"layers": {"Dense_0": 0.1}, "dead": [], "bytes": 8000, "bits": 0.24}
    return found | more


def test_differences_are_to_the_signed_supermask_and_corrected():
    rows = with_differences(
        [
            row("signed Supermask", [0.97, 0.971, 0.972]),
            row("other", [0.98, 0.981, 0.982]),
            row("same", [0.971, 0.971, 0.971]),
            row("not run", []),
        ],
        "signed Supermask",
    )
    assert [one["difference"] for one in rows[:3]] == pytest.approx([0, 0.01, 0])
    assert rows[0]["p"] is None and rows[3]["p"] is None and rows[3]["difference"] is None
    assert rows[1]["p"] < 0.01 and rows[2]["p"] == pytest.approx(1)


def test_differences_to_a_row_of_several_densities_are_at_the_same():
    many = [row("a", [0.9, 0.92], asked=0.1), row("a", [0.8], asked=0.01)]
    many += [row("b", [0.95, 0.97], asked=0.1), row("b", [0.7], asked=0.01), row("b", [0.7], asked=0.5)]
    found = with_differences(many, "a")
    assert [one["difference"] for one in found[:4]] == pytest.approx([0, 0, 0.05, -0.1])
    assert found[4]["difference"] is None


def test_the_table_says_what_was_not_run():
    text = table(
        with_differences([row("signed Supermask", [0.97, 0.972]), row("RigL", [], asked=0.1)], "signed Supermask")
    )
    lines = text.splitlines()
    assert lines[2].startswith(
        "| signed Supermask |  | 10.00 | 97.10 | 97.00 to 97.20 | +0.00 |  | frozen | 0.24 | 8,000 |"
    )
    assert lines[3].startswith("| RigL | 10 |  | not run |")
    assert len({line.count("|") for line in lines}) == 1
    assert comma_separated([row("a", [0.5])]).splitlines()[1].count("0.5") >= 1


def test_a_layer_that_lost_all_weights_in_one_seed_is_dead(tmp_path):
    run = trained(tmp_path / "runs", {0: (0.2, 0.0), 1: (0.4, 0.1)})
    found = record(17, BLOCK_A[17], 0.1, run, {run.folder.name: {"bytes": 1234}}, seconds={"rigl": 0.25})
    assert found["layers"] == {"Dense_0": pytest.approx(0.3), "Dense_1": pytest.approx(0.05)}
    assert found["dead"] == ["Dense_1"]
    assert (found["runs"], found["bytes"], found["seconds"]) == (
        2,
        1234,
        0.25,
    )  # there are no masks: what an earlier table knew
    assert "| 70.0 95.0 | Dense_1 |" in table(with_differences([found], ""))


def test_seconds_of_a_gpu_are_its_own(tmp_path):
    run = trained(tmp_path / "runs", {0: (0.2, 0.1)}, environment={"backend": "gpu"})
    own = run.summary["seconds_per_epoch_and_seed"]["median"]
    assert record(17, BLOCK_A[17], 0.1, run, seconds={"rigl": 1e6})["seconds"] == own


def test_bytes_that_a_table_knows(tmp_path):
    path = tmp_path / "table.csv"
    assert known_nets(path) == {}
    rows = [row("a", [0.5], run="x"), row("b", [0.5], run="y", bytes=None), row("c", [])]
    path.write_text(comma_separated(rows))
    layers = {"layers": {"Dense_0": 0.1}}
    assert known_nets(path) == {"x": {"bytes": 8000, **layers}, "y": layers}
    newer = tmp_path / "newer.csv"
    newer.write_text(comma_separated([row("a", [0.5], run="x", bytes=None), row("b", [0.5], run="y", bytes=7)]))
    assert known_nets(path, newer) == {"x": {"bytes": 8000, **layers}, "y": {"bytes": 7, **layers}}
    path.write_text(comma_separated([row("a", [0.5], run="x", file_accuracy=0.75, dead=["A", "B"], nonzero=0.05)]))
    assert known_nets(path) == {
        "x": {"bytes": 8000, "file_accuracy": 0.75, "nonzero": 0.05, "dead": ["A", "B"], **layers}
    }


def test_a_run_published_without_history_has_the_layers_of_a_table(tmp_path):
    run = trained(tmp_path / "runs", {0: (0.2, 0.0), 1: (0.4, 0.1)})
    own = record(17, BLOCK_A[17], 0.1, run)
    path = tmp_path / "table.csv"
    path.write_text(comma_separated([own]))
    (run.folder / "history.csv").unlink()
    assert record(17, BLOCK_A[17], 0.1, run)["layers"] == {}
    assert record(17, BLOCK_A[17], 0.1, run, known_nets(path)) == own


def test_kept_weights_of_which_many_are_0_are_said():
    assert "| a |  | 10.00 (not 0: 7.25) | 50.00 |" in table([row("a", [0.5], nonzero=0.0725)])
    assert "| a |  | 10.00 | 50.00 |" in table([row("a", [0.5], nonzero=None)])


def test_layers_that_excluded_seeds_lost_are_dead():
    failed = [{"seed": 0, "epoch": 3, "reason": "no weight is left in Dense_1, Dense_2"}, {"seed": 1, "epoch": 4}]
    assert emptied(failed) == ["Dense_1", "Dense_2"] and emptied([]) == []
    text = table([row("all", [], failed=2, dead=emptied(failed), asked=0.01)])
    assert "| all | 1 |  | no seed of 2 was left |" in text and "| Dense_1 Dense_2 |" in text


def test_seconds_of_a_benchmark_are_the_first_that_are_printed(tmp_path):
    path = tmp_path / "learners.txt"
    line = "{}  minimum 0.4  median {} s per epoch and seed  1.00 of signed\n"
    path.write_text("$ command\n" + line.format("rigl", 0.51) + line.format("set", 0.6) + line.format("rigl", 9))
    assert idle_seconds(path) == {"rigl": 0.51, "set": 0.6}


def test_labels_beside_each_other_keep_a_gap():
    assert apart([(0, 100), (50, 95), (500, 99)], [100, 100, 100], gap=10) == [100, 90, 99]
    assert apart([(0, 100), (0, 98), (0, 95)], [10, 10, 10], gap=10) == [100, 90, 80]


def trained(root, shares, environment=None):
    """Return a run without masks whose two layers end with these shares of their weights, by seed."""
    config = {"model": "fcn", "method": "rigl", "init": "elu", "preset": "protocol", "dataset": "mnist"}
    config |= {"epochs": 1, "learning_rate": 0.05}
    run = open_run(root, config=config, environment=environment or {}, weights=9000)
    plain = {"epoch": 1, "train_loss": 1.0, "test_loss": 1.0, "test_accuracy": 0.5, "remaining_weights": 0.1}
    plain |= {"flips": 0.0, "seconds": 1.0}
    run.add_seeds(
        history_rows=[
            {"seed": seed, **plain, "Dense_0:remaining": first, "Dense_1:remaining": second}
            for seed, (first, second) in shares.items()
        ],
        finals=[{"seed": seed, "test_accuracy": 0.5, "remaining_weights": 0.1} for seed in shares],
    )
    return read_finished(run.folder)


def test_every_method_is_compared():
    assert {entry.method for entry in BLOCK_A} >= set(LITERATURE) - {"bnn", "bbg"}
    assert {entry.method for entry in BLOCK_B} >= set(LITERATURE)
    for block in BLOCKS.values():
        names = [entry.name for entry in block.entries]
        assert len(set(names)) == len(names) and block.reference in names


def test_ways_to_a_density_share_their_runs_with_the_comparison():
    common = [
        one
        for one in WAYS
        if any(one.overrides(0.1) == other.overrides(0.1) and one.method == other.method for other in BLOCK_A)
    ]
    assert {one.method for one in common} == {one.method for one in WAYS} and all(one.dial for one in WAYS)
