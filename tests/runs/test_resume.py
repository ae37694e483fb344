"""Training that was stopped and resumed is, bit for bit, training that never stopped."""

import dataclasses

import chex
import jax
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.recipes import build
from ssm.recipes.config import resolve
from ssm.runs import checkpoint
from ssm.runs.names import member_key
from ssm.runs.run import resumed_groups
from ssm.training.loop import train_members
from ssm.training.snapshot import Snapshot, frozen_hashes, restored, stored_arrays
from tests.support.groups import begun
from tests.support.runs import Crash, content, crashing, run_config, same_content, short
from tests.support.quick import quick

SEEDS = [0, 3, 5]
PLATEAU = {"schedule": "plateau", "patience": 1, "plateau_factor": 0.5, "min_delta": 0.5, "reductions": 2}
KINDS = {
    "momentum and another scale": {"momentum": 0.5, "weight_distribution": "uniform"},
    "plateau": {**PLATEAU, "epochs": 6},
}


class Made:
    """A configuration's trainer, and its members."""

    def __init__(self, config, dataset, devices=1, **options):
        self.config = config
        self.trainer = build.trainer(config, dataset, devices=jax.devices()[:devices], resumable=True, **options)

    def members(self, seeds=SEEDS):
        settings = self.config.as_dict()
        return [build.member(self.config, seed, key=member_key(settings, seed)) for seed in seeds]

    def trained(self, seeds=SEEDS, begin=None, stop=None, folder=None):
        """Return the outcomes; or, if it is stopped after an epoch, what its file holds then."""
        kept = []

        def after_epoch(epoch, snapshot):
            if epoch == stop:
                path = checkpoint.save(folder, snapshot(), "data")
                kept.append(checkpoint.load(path)[0])
                raise KeyboardInterrupt

        options = {"begin": begin, "variables": True}
        if stop is None:
            return train_members(self.trainer, self.members(seeds), **options)
        with pytest.raises(KeyboardInterrupt):
            train_members(self.trainer, self.members(seeds), after_epoch=after_epoch, **options)
        return kept[0]


def same(one, other):
    """Say that two outcomes are the same but for the seconds."""
    assert [{**row, "seconds": 0} for row in one.history] == [{**row, "seconds": 0} for row in other.history]
    assert one.final == other.final
    chex.assert_trees_all_equal((one.masks, one.variables), (other.masks, other.variables))


@pytest.fixture(scope="module", params=quick(KINDS))
def made(request, digits):
    return Made(short(digits, **KINDS[request.param]), digits)


def test_from_any_epoch_on(made, tmp_path):
    whole = made.trained()
    for stop in range(1, len(whole[0].history)):
        begin = made.trained(stop=stop, folder=tmp_path)
        for one, other in zip(whole, made.trained(begin=begin), strict=True):
            same(one, other)


def test_again_and_again(made, tmp_path):
    begin = made.trained(stop=1, folder=tmp_path)
    begin = made.trained(begin=begin, stop=2, folder=tmp_path)
    for one, other in zip(made.trained(), made.trained(begin=begin), strict=True):
        same(one, other)


@pytest.mark.slow
def test_in_other_groups_and_on_more_devices(digits, tmp_path):
    one, eight = (Made(short(digits), digits, devices) for devices in (1, 8))
    whole = one.trained()
    begin = one.trained(stop=2, folder=tmp_path)
    found = [
        outcome
        for part, own in resumed_groups(one.members(), [begin], 2)
        for outcome in eight.trained([member.seed for member in part], begin=own)
    ]
    for one, other in zip(whole, found, strict=True):
        same(one, other)


@pytest.fixture
def resnet(pictures):
    named = {"model": "resnet20", "method": "signed", "preset": "default", "dataset": "cifar10"}
    values = {"epochs": 2, "batch_size": 8, "width": 0.25, "batch_norm": "affine"}
    return Made(resolve(**named, samples=20, overrides=values), pictures, form="im2col")


@pytest.mark.slow  # a whole ResNet; what is stored is one tree, whatever is in it
def test_batch_statistics_and_offsets_are_stored_too(resnet):
    fresh = begun(resnet.trainer, resnet.members((1, 2)))
    changed = jax.tree.map(lambda leaf: leaf + 1, (fresh.params, fresh.optimizer, fresh.rest))
    state = fresh._replace(params=changed[0], optimizer=changed[1], rest=changed[2])
    begin = Snapshot(
        members=("a", "b"),
        epoch=1,
        arrays=stored_arrays(state, 2, updated=False),
        frozen=frozen_hashes(fresh, 2, updated=False),
        plateaus=(),
        failures={},
        history=[],
    )
    assert any("BatchNorm" in path and "mean" in path for path in begin.arrays)
    assert any("bias" in path for path in begin.arrays)
    found = restored(resnet.trainer.program, fresh, begin, ("a", "b"), begin.frozen, [0, 1], updated=False)
    chex.assert_trees_all_equal(found, state)
    assert begin.frozen[0] != begin.frozen[1]


@pytest.mark.slow
def test_a_resnet_goes_on(resnet, tmp_path):
    whole = resnet.trained([1])
    begin = resnet.trained([1], stop=1, folder=tmp_path)
    same(whole[0], resnet.trained([1], begin=begin)[0])


@pytest.fixture(scope="module")
def small(digits):
    return Made(short(digits), digits)


def test_each_seed_goes_on_from_where_it_had_come_the_farthest(small, tmp_path):
    members = small.members([*SEEDS, 7])
    one = small.trained([0, 3], stop=1, folder=tmp_path)
    other = small.trained([3, 5], stop=2, folder=tmp_path)
    groups = resumed_groups(members, [one, other], 5)
    found = [([member.seed for member in part], begin and begin.epoch) for part, begin in groups]
    assert found == [([0], 1), ([3, 5], 2), ([7], None)]
    assert resumed_groups(members, [], 2) == [(members[:2], None), (members[2:], None)]


def test_frozen_weights_that_are_not_made_again_are_an_error(small, tmp_path):
    begin = small.trained(stop=1, folder=tmp_path)
    changed = dataclasses.replace(begin, frozen=("0" * 64,) * 3)
    with pytest.raises(UserError, match="the frozen weights that the seeds give now are not those"):
        small.trained(begin=changed)


def test_another_nets_checkpoint_is_an_error_and_never_restored_in_part(small, tmp_path):
    begin = small.trained(stop=1, folder=tmp_path)
    wider = {path: np.repeat(array, 2, axis=-1) for path, array in begin.arrays.items()}
    fewer = dict(list(begin.arrays.items())[1:])
    for arrays in (wider, fewer):
        with pytest.raises(UserError, match="other seeds or another net"):
            small.trained(begin=dataclasses.replace(begin, arrays=arrays))


# A whole run


@pytest.mark.slow  # tests/runs/test_faults.py has others like it
def test_a_run_goes_on_after_a_crash_and_leaves_no_checkpoint(digits, tmp_path):
    config = short(digits)
    whole = run_config(config, digits, SEEDS, out=tmp_path / "whole")
    logged = []
    with pytest.raises(Crash):
        run_config(config, digits, SEEDS, out=tmp_path / "stopped", **crashing(3))
    stopped = next((tmp_path / "stopped").iterdir())
    assert not (stopped / "summary.json").exists() and len(list((stopped / "checkpoints").iterdir())) == 2
    run = run_config(config, digits, SEEDS, out=tmp_path / "stopped", log=logged.append)
    assert "resuming 3 seeds after epoch 2" in logged
    same_content(content(whole), content(run))
    assert not list((run.folder / "checkpoints").iterdir())


@pytest.mark.slow
def test_fresh_starts_over(digits, tmp_path):
    config = short(digits, epochs=3)
    with pytest.raises(Crash):
        run_config(config, digits, [0], out=tmp_path, **crashing(2))
    logged = []
    run = run_config(config, digits, [0], out=tmp_path, log=logged.append, fresh=True)
    assert not any("resuming" in line for line in logged) and run.finished_seeds() == [0]
