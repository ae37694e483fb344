"""Training that was stopped and gone on with is, bit for bit, training that never stopped."""

import jax
import numpy as np
import pytest

from ssm.runs import checkpoint
from ssm.recipes.config import resolve
from ssm.errors import UserError
from ssm.runs.history import read_history
from ssm.runs.mask_file import load_masks
from ssm.runs.folder import mask_path
from ssm.runs.run import Conduct, resumed_groups, run_seeds
from ssm.training.snapshot import frozen_hashes, restored, stored_arrays
from ssm.training.loop import beginning, make_trainer, train_members

SEEDS = [0, 3, 5]


def config(digits, **overrides):
    values = {"epochs": 4, "batch_size": 64, "width": 0.1, **overrides}
    named = {"model": "fcn", "method": "signed", "preset": "default", "dataset": "mnist"}
    return resolve(**named, samples=len(digits.train_labels), overrides=values)


PLATEAU = {"schedule": "plateau", "patience": 1, "plateau_factor": 0.5, "min_delta": 0.5, "reductions": 2}
KINDS = {
    "momentum and another scale": {"momentum": 0.5, "weight_distribution": "uniform"},
    "plateau": {**PLATEAU, "epochs": 6},
}


def trained(trainer, seeds=SEEDS, begin=None, stop=None, folder=None):
    """Return the outcomes; or, if it is stopped after an epoch, what its file holds then."""
    kept = []

    def after_epoch(epoch, snapshot):
        if epoch == stop:
            path = checkpoint.save(folder, snapshot(), "data")
            kept.append(checkpoint.load(path)[0])
            raise KeyboardInterrupt

    members = [(trainer.config, seed) for seed in seeds]
    if stop is None:
        return train_members(trainer, members, begin=begin)
    with pytest.raises(KeyboardInterrupt):
        train_members(trainer, members, begin=begin, after_epoch=after_epoch)
    return kept[0]


def same(one, other):
    """Say that two outcomes are the same but for the seconds."""
    assert [{**row, "seconds": 0} for row in one.history] == [{**row, "seconds": 0} for row in other.history]
    assert one.final == other.final
    jax.tree.map(np.testing.assert_array_equal, (one.masks, one.params), (other.masks, other.params))


@pytest.fixture(scope="module", params=KINDS)
def trainer(request, digits):
    return make_trainer(config(digits, **KINDS[request.param]), digits, devices=jax.devices()[:1], resumable=True)


def test_from_any_epoch_on(trainer, tmp_path):
    whole = trained(trainer)
    for stop in range(1, len(whole[0].history)):
        begin = trained(trainer, stop=stop, folder=tmp_path)
        for one, other in zip(whole, trained(trainer, begin=begin), strict=True):
            same(one, other)


def test_again_and_again(trainer, tmp_path):
    begin = trained(trainer, stop=1, folder=tmp_path)
    begin = trained(trainer, begin=begin, stop=2, folder=tmp_path)
    for one, other in zip(trained(trainer), trained(trainer, begin=begin), strict=True):
        same(one, other)


def test_in_other_groups_and_on_more_devices(digits, tmp_path):
    one, eight = (
        make_trainer(config(digits), digits, devices=jax.devices()[:count], resumable=True) for count in (1, 8)
    )
    whole = trained(one)
    begin = trained(one, stop=2, folder=tmp_path)
    members = [(one.config, seed) for seed in SEEDS]
    found = [
        outcome
        for part, own in resumed_groups(members, [begin], 2)
        for outcome in trained(eight, [seed for _, seed in part], begin=own)
    ]
    for one, other in zip(whole, found, strict=True):
        same(one, other)


@pytest.fixture
def resnet(pictures):
    named = {"model": "resnet20", "method": "signed", "preset": "default", "dataset": "cifar10"}
    values = {"epochs": 2, "batch_size": 8, "width": 0.25, "batch_norm": "affine"}
    settings = resolve(**named, samples=20, overrides=values)
    return make_trainer(settings, pictures, devices=jax.devices()[:1], form="im2col", resumable=True)


@pytest.mark.slow  # a whole ResNet; what is stored is one tree, whatever is in it
def test_batch_statistics_and_offsets_are_stored_too(resnet):
    program, members = resnet.program, [(resnet.config, seed) for seed in (1, 2)]
    fresh = program.start(program.place(beginning(members)))
    changed = jax.tree.map(lambda leaf: leaf + 1, (fresh.form.params, fresh.optimiser, fresh.rest))
    state = fresh._replace(form=fresh.form._replace(params=changed[0]), optimiser=changed[1], rest=changed[2])
    begin = checkpoint.Snapshot(
        members=("a", "b"),
        epoch=1,
        arrays=stored_arrays(state, 2),
        frozen=frozen_hashes(fresh, 2),
        plateaus=(),
        bad={},
        history=[],
    )
    assert any("batch_stats" in path for path in begin.arrays) and any("bias" in path for path in begin.arrays)
    found = restored(program, fresh, begin, ("a", "b"), begin.frozen, [0, 1])
    jax.tree.map(np.testing.assert_array_equal, found, state)
    assert begin.frozen[0] != begin.frozen[1]


@pytest.mark.slow
def test_a_resnet_goes_on(resnet, tmp_path):
    whole = trained(resnet, [1])
    begin = trained(resnet, [1], stop=1, folder=tmp_path)
    same(whole[0], trained(resnet, [1], begin=begin)[0])


def test_each_seed_goes_on_from_where_it_had_come_the_farthest(digits, tmp_path):
    trainer = make_trainer(config(digits), digits, devices=jax.devices()[:1], resumable=True)
    members = [(trainer.config, seed) for seed in [*SEEDS, 7]]
    one = trained(trainer, [0, 3], stop=1, folder=tmp_path)
    other = trained(trainer, [3, 5], stop=2, folder=tmp_path)
    groups = resumed_groups(members, [one, other], 5)
    found = [([seed for _, seed in part], begin and begin.epoch) for part, begin in groups]
    assert found == [([0], 1), ([3, 5], 2), ([7], None)]
    assert resumed_groups(members, [], 2) == [(members[:2], None), (members[2:], None)]


def test_frozen_weights_that_are_not_made_again_are_an_error(digits, tmp_path):
    trainer = make_trainer(config(digits), digits, devices=jax.devices()[:1], resumable=True)
    begin = trained(trainer, stop=1, folder=tmp_path)
    changed = checkpoint.Snapshot(**{**vars(begin), "frozen": ("0" * 64,) * 3})
    with pytest.raises(UserError, match="the frozen weights that the seeds give now are not those"):
        trained(trainer, begin=changed)


def test_another_nets_checkpoint_is_an_error_and_never_restored_in_part(digits, tmp_path):
    trainer = make_trainer(config(digits), digits, devices=jax.devices()[:1], resumable=True)
    begin = trained(trainer, stop=1, folder=tmp_path)
    wider = {path: np.repeat(array, 2, axis=-1) for path, array in begin.arrays.items()}
    fewer = dict(list(begin.arrays.items())[1:])
    for arrays in (wider, fewer):
        with pytest.raises(UserError, match="other seeds or another net"):
            trained(trainer, begin=checkpoint.Snapshot(**{**vars(begin), "arrays": arrays}))


# A whole run


class Crash(Exception):
    pass


def crashing(after):
    """Return a way to run that fails after so many epochs of a group, as a killed program would."""

    def conduct(tell=print):
        def count(told):
            if told.epoch == after:
                raise Crash

        from contextlib import contextmanager

        from ssm.runs.saving import Saving

        @contextmanager
        def watchers(folder):
            yield count

        return Conduct(saving=Saving(every=1), watchers=watchers, tell=tell)

    return conduct


def content(run):
    rows = [{**row, "seconds": 0} for row in read_history(run.folder / "history.csv")]
    masks = {seed: load_masks(mask_path(run.folder, seed)) for seed in run.finished_seeds()}
    summary = {**run.summary(), "seconds_per_epoch_and_seed": 0}
    return rows, masks, summary


@pytest.mark.slow  # tests/runs/test_faults.py has others like it
def test_a_run_goes_on_after_a_crash_and_leaves_no_checkpoint(digits, tmp_path):
    settings = config(digits)
    whole = run_seeds(settings, digits, SEEDS, out=tmp_path / "whole")
    told = []
    with pytest.raises(Crash):
        run_seeds(settings, digits, SEEDS, out=tmp_path / "stopped", conduct=crashing(3)())
    stopped = next((tmp_path / "stopped").iterdir())
    assert not (stopped / "summary.json").exists() and len(list((stopped / "checkpoints").iterdir())) == 2
    run = run_seeds(settings, digits, SEEDS, out=tmp_path / "stopped", conduct=Conduct(tell=told.append))
    assert "going on with 3 seed(s) after epoch 2" in told
    for one, other in zip(content(whole), content(run), strict=True):
        np.testing.assert_equal(one, other)
    assert not list((run.folder / "checkpoints").iterdir())


def test_fresh_starts_over(digits, tmp_path):
    settings = config(digits, epochs=3)
    with pytest.raises(Crash):
        run_seeds(settings, digits, [0], out=tmp_path, conduct=crashing(2)())
    told = []
    run = run_seeds(settings, digits, [0], out=tmp_path, conduct=Conduct(tell=told.append, fresh=True))
    assert not any("going on" in line for line in told) and run.finished_seeds() == [0]
