import dataclasses
import json
import os
import signal
import time
from types import SimpleNamespace

import chex
import jax
import numpy as np
import pytest

from ssm.data.dataset import ArrayDataset
from ssm.errors import UserError
from ssm.recipes.config import resolve
from ssm.runs import run as module
from ssm.runs.folder import mask_path
from ssm.runs.names import run_name
from ssm.runs.history import read_history
from ssm.runs.job import recipe_job
from ssm.runs.mask_file import load_masks
from ssm.runs.run import RunOptions, fitting_plan, plan
from ssm.runs.signals import Interrupted
from ssm.runs.status import status
from ssm.training.first_batch import FirstBatch
from ssm.training.loop import Outcome, Progress
from ssm.training.snapshot import Failure
from tests.support.runs import run_config


def config(digits, **overrides):
    values = {"epochs": 2, "batch_size": 64, "learning_rate": 0.02, **overrides}
    return resolve(
        model="fcn",
        method="signed",
        preset="default",
        dataset="mnist",
        samples=len(digits.train_labels),
        overrides=values,
    )


@pytest.mark.parametrize("model", ["conv2", "resnet20"])
def test_a_net_of_convolutions_is_refused_other_inputs_than_images(model):
    x, y = np.zeros((8, 5), np.float32), np.arange(8, dtype=np.int32) % 2
    flat = ArrayDataset("npz:flat", "made", x, y, x, y, 2, ("0", "1"))
    named = {"model": model, "method": "signed", "preset": "default", "dataset": flat.name}
    with pytest.raises(UserError, match=rf"--model={model} takes images .* is \[5\]: take --model=fcn"):
        recipe_job(resolve(**named, samples=8, overrides={"batch_size": 4}), flat)


@pytest.fixture(scope="module")
def together(digits, tmp_path_factory):
    return run_config(config(digits), digits, [0, 1, 2], out=tmp_path_factory.mktemp("together"))


@pytest.fixture
def trained(digits, monkeypatch):
    """Trains at once, with made figures; the list holds the groups of seeds it was asked for."""
    groups = []

    def train_members(trainer, members, report, **more):
        seeds = [member.seed for member in members]
        groups.append((seeds, trainer.devices))
        row = {"epoch": 1, "train_loss": 0.5, "test_accuracy": 0.9, "remaining_weights": 0.04, "flips": 0.1}
        rows = [{"seed": seed, "seconds": 1.0, **row} for seed in seeds]
        report(Progress(seeds, 1, rows, 1.0, {}, range(len(rows)), ["run"] * len(rows)))
        final, masks = {"test_loss": 0.5, "test_accuracy": 0.9, "remaining_weights": 0.04}, {"Dense_0": np.array([[1, 0, -1]], np.int8)}
        return [Outcome([row], {"seed": row["seed"], **final}, masks, {}, {}, {}) for row in rows]

    monkeypatch.setattr(module, "train_members", train_members)
    monkeypatch.setattr(
        module,
        "make_trainer",
        lambda task, train, test, *, devices, **more: SimpleNamespace(task=task, devices=len(devices)),
    )
    monkeypatch.setattr(module, "first_batch", lambda trainer, seed: FirstBatch(1.0, 0.0))
    return groups


def numbers(run):
    """A run's history, without the seconds."""
    return [{**row, "seconds": 0} for row in read_history(run.folder / "history.csv")]


def masks(run, seed):
    return load_masks(mask_path(run.folder, seed))


@pytest.mark.parametrize(
    ("backend", "seeds", "devices", "wanted", "planned"),
    [
        ("cpu", 50, 2, None, (10, 2)),  # five per core
        ("cpu", 7, 1, None, (5, 1)),
        ("cpu", 3, 8, None, (3, 3)),
        ("gpu", 50, 1, None, (50, 1)),  # all
        ("cpu", 50, 2, 20, (20, 2)),
        ("cpu", 50, 2, 1, (1, 1)),
        ("gpu", 5, 1, 100, (5, 1)),
    ],
)
def test_a_plan_says_how_many_seeds_on_how_many_devices(monkeypatch, backend, seeds, devices, wanted, planned):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert plan(seeds, devices, wanted) == planned


def test_seeds_are_run_in_groups_that_fit_the_memory(monkeypatch, digits):
    job = recipe_job(config(digits), digits)
    assert job.memory is not None
    needed = job.memory(devices=8, loop="map")
    monkeypatch.setattr(module, "available_memory", lambda: needed(20) / module.MEMORY_SHARE)
    assert fitting_plan(job, 50, RunOptions()) == (20, 8)
    assert fitting_plan(job, 12, RunOptions()) == (12, 8)
    assert fitting_plan(job, 50, RunOptions(group=30)) == (30, 8)  # the user knows better
    assert fitting_plan(dataclasses.replace(job, memory=None), 50, RunOptions()) == (40, 8)  # not known: `plan`'s
    monkeypatch.setattr(module, "available_memory", lambda: 0.0)
    assert fitting_plan(job, 50, RunOptions()) == (1, 1)


def test_what_is_worth_knowing_is_said_before_training(digits, tmp_path):
    logged = []
    run_config(config(digits, width=0.1, epochs=1), digits, [0], out=tmp_path, log=logged.append)
    (line,) = logged
    assert line.startswith("first batch: logits have standard deviation ")


def test_a_run_has_every_seed_and_epoch(together, digits):
    assert together.finished_seeds() == [0, 1, 2]
    assert [(row["seed"], row["epoch"]) for row in numbers(together)] == [
        (seed, epoch) for seed in (0, 1, 2) for epoch in (1, 2)
    ]
    summary = together.summary()
    assert (summary["runs"], summary["weights"], summary["source"]) == (3, 266_200 - 600, "made by the tests")
    assert together.folder.name == run_name(config(digits).as_dict())
    (entry,) = json.loads((together.folder / "environment.json").read_bytes())
    assert entry["seeds"] == [0, 1, 2]
    assert (entry["environment"]["precision"], entry["environment"]["seed_loop"]) == ("float32", "map")


def test_groups_do_not_matter_for_the_numbers(together, digits, tmp_path):
    run = run_config(config(digits), digits, [2, 0, 1], out=tmp_path, group=2)
    assert numbers(run) == numbers(together)
    for seed in (0, 1, 2):
        chex.assert_trees_all_equal(masks(run, seed), masks(together, seed))


def test_a_finished_seed_is_not_trained_again(together, digits, monkeypatch):
    monkeypatch.setattr(module, "make_trainer", None)  # a call would raise
    before = {path: path.read_bytes() for path in together.folder.rglob("*") if path.is_file()}
    run = run_config(config(digits), digits, [0, 2], out=together.folder.parent)
    assert run.summary() == together.summary()
    assert {path: path.read_bytes() for path in together.folder.rglob("*") if path.is_file()} == before


def test_only_missing_seeds_are_trained_in_groups_over_the_devices(trained, digits, tmp_path):
    run_config(config(digits), digits, [4], out=tmp_path)
    run = run_config(config(digits), digits, range(8), out=tmp_path, group=3)
    assert trained == [([4], 1), ([0, 1, 2], 3), ([3, 5, 6], 3), ([7], 3)]
    assert run.finished_seeds() == list(range(8))


def test_a_seed_named_twice_is_trained_once(trained, digits, tmp_path):
    run = run_config(config(digits), digits, [3, 1, 3], out=tmp_path)
    assert [seeds for seeds, _ in trained] == [[3, 1]]
    assert [row["seed"] for row in numbers(run)] == [1, 3]


def test_another_configuration_is_another_run(trained, digits, tmp_path):
    one, other = (run_config(config(digits, epochs=epochs), digits, [0], out=tmp_path) for epochs in (1, 2))
    assert one.folder != other.folder and len(trained) == 2


def test_what_was_finished_before_a_crash_is_kept(trained, digits, tmp_path, monkeypatch):
    whole = module.train_members

    def crashes(trainer, members, report, **more):
        if members[0].seed == 2:
            raise KeyboardInterrupt
        return whole(trainer, members, report, **more)

    monkeypatch.setattr(module, "train_members", crashes)
    with pytest.raises(KeyboardInterrupt):
        run_config(config(digits), digits, range(4), out=tmp_path, group=1)
    monkeypatch.setattr(module, "train_members", whole)
    run = run_config(config(digits), digits, range(4), out=tmp_path, group=1)
    assert [seeds for seeds, _ in trained] == [[0], [1], [2], [3]]
    assert run.finished_seeds() == [0, 1, 2, 3]


def test_seeds_that_turn_non_finite_are_finished_and_said(trained, digits, tmp_path, capsys, monkeypatch):
    def fails(trainer, members, report, **more):  # as ssm.training.loop does where every seed fails in the first epoch
        seeds = [member.seed for member in members]
        report(Progress(seeds, 1, [], 1.0, {0: Failure(1, "why"), 1: Failure(1, "why")}, [], ["run"] * 2))
        nan = float("nan")
        failed = {"test_loss": nan, "test_accuracy": nan, "remaining_weights": nan, "failed_epoch": 1, "failed_reason": "why"}
        return [Outcome([], {"seed": seed, **failed}, None, None, {}, {}) for seed in seeds]

    monkeypatch.setattr(module, "train_members", fails)
    run = run_config(config(digits), digits, [0, 1], out=tmp_path)
    summary = run.summary()
    assert summary["failed"] == [{"seed": seed, "epoch": 1, "reason": "why"} for seed in (0, 1)]
    assert summary["runs"] == 0 and summary["test_accuracy"]["mean"] is None
    assert "no seed left" in capsys.readouterr().err
    assert not list(run.folder.glob("masks/*"))
    assert run_config(config(digits), digits, [0, 1], out=tmp_path).finished_seeds() == [0, 1]


def test_a_folder_that_cannot_be_written_any_more_is_the_users_error(trained, digits, tmp_path):
    folder = tmp_path / run_name(config(digits).as_dict())
    folder.mkdir()
    (folder / "masks").write_text("in the way, as a full disk would be")
    with pytest.raises(UserError, match=f"{folder.name} cannot be written: "):
        run_config(config(digits), digits, [0], out=tmp_path)
    assert not (folder / "summary.json").exists()


def test_seeds_of_other_data_under_the_same_name_are_not_mixed(digits, trained, tmp_path):
    run_config(config(digits), digits, [0], out=tmp_path)
    other = dataclasses.replace(digits, train_images=digits.train_images[:, ::-1])
    with pytest.raises(UserError, match=r"other data of the same name \(made by the tests\); choose another --out"):
        run_config(config(digits), other, [0, 1], out=tmp_path)
    assert run_config(config(digits), digits, [0, 1], out=tmp_path).finished_seeds() == [0, 1]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("two\nlines"), "ValueError: two lines"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (SystemExit(3), "SystemExit: 3"),
        (MemoryError(), "memory does not suffice for one seed (MemoryError)"),
    ],
)
def test_whatever_ends_training_is_in_the_journal(digits, tmp_path, trained, monkeypatch, error, reason):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(module, "train_members", fail)
    with pytest.raises(UserError if isinstance(error, MemoryError) else type(error)):
        run_config(config(digits), digits, [0], out=tmp_path)
    (folder,) = tmp_path.iterdir()
    found = status(folder)
    assert found.state == "failed" and found.reason.startswith(reason)


def test_what_fails_before_the_first_epoch_is_in_the_journal(digits, tmp_path, trained, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("INTERNAL: no compiler")

    monkeypatch.setattr(module, "first_batch", fail)
    with pytest.raises(RuntimeError):
        run_config(config(digits), digits, [0, 1], out=tmp_path)
    (folder,) = tmp_path.iterdir()
    found = status(folder)
    assert (found.state, found.seeds, found.reason) == ("failed", (0, 2), "RuntimeError: INTERNAL: no compiler")


def test_a_signal_before_the_first_epoch_is_no_failure(digits, tmp_path, trained, monkeypatch):
    ready = module.ready

    def signalled(*arguments, **options):
        os.kill(os.getpid(), signal.SIGUSR2)
        time.sleep(0.2)  # the watcher is a thread
        return ready(*arguments, **options)

    monkeypatch.setattr(module, "ready", signalled)
    with pytest.raises(Interrupted, match="stopped before an epoch began") as stopped:
        run_config(config(digits), digits, [0], out=tmp_path)
    (folder,) = tmp_path.iterdir()
    assert (stopped.value.number, status(folder).state, trained) == (signal.SIGUSR2, "stopped", [])
