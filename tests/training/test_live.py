"""Training without the hidden units that are dead for good is training with them, but for rounding."""

from dataclasses import replace
from functools import partial

import chex
import jax
import numpy as np
import pytest

from ssm.recipes import build
from ssm.runs import checkpoint
from ssm.training.live import Kept, LiveUnits, kept, ladder
from ssm.training.loop import train_members
from tests.support.dying import DYING, TRAINED, dying_config, dying_trainer
from tests.support.groups import as_result, members_of, rows_of, same, train

SEEDS = [3, 5, 7]


@pytest.fixture(scope="module")
def run(digits):
    def run(seeds=SEEDS, **options):
        return train(dying_trainer(digits, **options), members_of(dying_config(digits), seeds))

    return run


@pytest.fixture(scope="module")
def group(run):
    return run()


@pytest.fixture(scope="module")
def whole(run):
    return run(live=False)


def test_dead_units_are_left_out_in_sizes(group):
    for seed, (now, later) in DYING.items():
        rows = rows_of(group, seed)
        assert [row["trained_units"] for row in rows] == TRAINED[seed]
        assert rows[0]["live_units"] == 120 - now == rows[0]["Dense_0:live_units"] + rows[0]["Dense_1:live_units"]
        assert rows[-1]["live_units"] == 120 - now - later


def test_all_else_is_as_with_them(group, whole):
    for seed in SEEDS:
        for name, mask in group.masks[seed].items():
            assert mask.shape == whole.masks[seed][name].shape
            assert np.mean(mask != whole.masks[seed][name]) < 1e-3
        for left, right in zip(rows_of(group, seed), rows_of(whole, seed), strict=True):
            assert left.keys() - right.keys() == {
                *("live_units", "trained_units", "Dense_0:live_units", "Dense_1:live_units")
            }
            for name in right.keys() - {"seconds"}:
                assert left[name] == pytest.approx(right[name], rel=1e-3, abs=1e-3)


def test_units_that_are_left_out_are_hidden_in_either_way(group, whole):
    for seed, (now, later) in DYING.items():
        dead = slice(5, 5 + now + later)
        for result in (group, whole):
            assert not result.masks[seed]["Dense_0"][:, dead].any()
            assert not result.masks[seed]["Dense_1"][dead].any()
            assert result.masks[seed]["Dense_0"][:, :5].any()


def test_a_seed_that_loses_none_is_the_same_bit_for_bit(group, whole):
    chex.assert_trees_all_equal(group.variables[7], whole.variables[7])


def test_frozen_weights_are_in_their_places(group, whole):
    for seed in SEEDS:
        chex.assert_trees_all_equal(group.variables[seed]["frozen"], whole.variables[seed]["frozen"])


@pytest.mark.slow
def test_a_seed_depends_on_no_other(group, run):
    same(run([3]), group, 3)


@pytest.mark.slow
def test_a_seed_depends_on_no_other_on_another_device(group, run):
    again = run([5, 3, 7], devices=jax.devices()[:2])
    for seed in SEEDS:
        same(again, group, seed)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [2, 5])
def test_a_group_that_was_stopped_is_resumed_bit_for_bit(digits, group, tmp_path, stop):
    trainer, config = dying_trainer(digits, resumable=True), dying_config(digits)
    members = [build.member(config, seed, key=f"dying/{seed}") for seed in SEEDS]

    def after_epoch(epoch, snapshot):
        if epoch == stop:
            checkpoint.save(tmp_path, snapshot(), "data")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_members(trainer, members, after_epoch=after_epoch)
    (path,) = tmp_path.iterdir()
    begin, _ = checkpoint.load(path)
    assert begin.arrays["[0].layers['Dense_0/kernel']"].shape == (3, 90, 784)
    assert begin.kept["Dense_0"].sum(1).tolist() == [{2: 64, 5: 48}[stop], {2: 90, 5: 64}[stop], 90]
    resumed = as_result(train_members(trainer, members, begin=begin, variables=True))
    for seed in SEEDS:
        same(resumed, group, seed)
    only = as_result(train_members(trainer, members[1:2], begin=begin.of([members[1].key]), variables=True))
    same(only, group, 5)


@pytest.mark.slow
def test_vectorised_seeds_share_the_largest_size(run, group):
    vectorised = run([3, 5], loop="vmap")
    for seed in (3, 5):
        for name, mask in vectorised.masks[seed].items():
            assert np.mean(mask != group.masks[seed][name]) < 1e-3
        assert [row["live_units"] for row in rows_of(vectorised, seed)] == [
            row["live_units"] for row in rows_of(group, seed)
        ]


def test_a_binary_net_may_leave_out_units_too(digits):
    assert build.task_of(replace(dying_config(digits), method="binary"), digits).hidden is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "baseline"},
        {"decay": "coupled"},
        {"method": "own", "learner": "tests.training.test_live:learner_with_update"},
        {"model": "resnet20", "batch_norm": "frozen"},
    ],
    ids=str,
)
def test_units_that_may_come_back_are_never_left_out(digits, changes):
    config = replace(dying_config(digits), **changes)
    net = build.build(config, classes=4)
    assert build.hidden_layers(config, net, lambda sizes: None) is None


def learner_with_update():
    from ssm import learners

    return learners.signed()._replace(update=lambda key, step, now: now)


def test_sizes():
    assert ladder(300) == (256, 208, 176, 144, 112, 96, 80, 64, 48, 32, 16)
    assert ladder(100) == (80, 64, 48, 32, 16)
    assert ladder(16) == ()


def units(digits, *flags, worth=0.0) -> LiveUnits:
    """Return what seeds train of 40 and 30 hidden units."""
    task = build.task_of(dying_config(digits), digits)
    task = replace(task, hidden=task.hidden._replace(worth=worth))
    kernels = {"Dense_0/kernel": (40, 784), "Dense_1/kernel": (30, 40), "Dense_2/kernel": (4, 30)}
    return LiveUnits(task, kernels, tuple(kept({"Dense_0": one, "Dense_1": np.ones(30, bool)}) for one in flags))


def flags(*left_out, units=40):
    return ~np.isin(np.arange(units), left_out)


def test_what_fills_up_a_size_is_dead_and_was_trained_so_far(digits):
    now = units(digits, flags())
    live = {"Dense_0": flags(*range(3, 30)), "Dense_1": np.ones(30, bool)}
    (after,) = now.without_dead({0: live}, samples=1).seeds
    # 13 live ones in a size of 16: the first three dead ones stay.
    assert np.flatnonzero(after.flags["Dense_0"]).tolist() == [0, 1, 2, 3, 4, 5, *range(30, 40)]
    assert after.sizes == {"Dense_0": 16, "Dense_1": 30}
    assert sorted(after.order["Dense_0"]) == list(range(40))


def test_units_are_left_out_only_where_that_is_worth_a_program(digits):
    live = {"Dense_0": flags(*range(3, 30)), "Dense_1": np.ones(30, bool)}
    saved = 2 * 3 * 24 * (784 + 30) * 1000
    for worth, changes in ((saved, True), (saved + 1, False)):
        before = units(digits, flags(), worth=worth)
        after = before.without_dead({0: live}, samples=1000)
        assert (after is not before) == changes == after.some_left_out


def test_live_units_are_told_in_the_order_of_the_arrays(digits):
    now = units(digits, flags(*range(8)))  # 32 of 40
    live = np.ones(40, bool)
    live[:16] = False  # places: units 8 to 23
    (after,) = now.without_dead({0: {"Dense_0": live, "Dense_1": np.ones(30, bool)}}, samples=1).seeds
    assert np.flatnonzero(after.flags["Dense_0"]).tolist() == list(range(24, 40))
    assert now.row(0, {"Dense_0": live, "Dense_1": np.ones(30, bool)}) == {
        "live_units": 46,
        "trained_units": 62,
        "Dense_0:live_units": 16,
        "Dense_1:live_units": 30,
    }


def test_moves_take_each_unit_to_its_place(digits):
    before, after = units(digits, flags(1), flags()), units(digits, flags(1, 2), flags(0))
    moves = before.moves(after)
    for place, (old, new) in enumerate(zip(before.seeds, after.seeds, strict=True)):
        np.testing.assert_array_equal(old.order["Dense_0"][moves["Dense_0"][place]], new.order["Dense_0"])


def test_parts_of_a_group(digits):
    group = units(digits, flags(), flags(*range(8)), flags(*range(8)), flags(*range(24)))
    assert group.parts([0, 1, 2, 3], "map") == {
        (): [0],
        (("Dense_0", 32), ("Dense_1", 30)): [1, 2],
        (("Dense_0", 16), ("Dense_1", 30)): [3],
    }
    assert group.parts([1, 3], "vmap") == {(("Dense_0", 32), ("Dense_1", 30)): [1, 3]}
    assert group.where({}).parts([1, 3], "map") == {(): [1, 3]}


def test_flags_are_of_the_nets_own_order():
    one = kept({"Dense_0": flags(0, 2, units=4)})
    assert isinstance(one, Kept) and one.order["Dense_0"].tolist() == [1, 3, 0, 2]
    np.testing.assert_array_equal(one.flags["Dense_0"], flags(0, 2, units=4))


def test_a_program_for_each_size_is_compiled_once(digits):
    trainer = dying_trainer(digits)
    members = partial(members_of, dying_config(digits))
    asked: list = []

    def epoch_of(sizes):
        asked.append((sizes, trainer.program.epoch_of(sizes)))
        return asked[-1][1]

    counted = trainer._replace(program=trainer.program._replace(epoch_of=epoch_of))
    train(counted, members(SEEDS))
    train(counted, members([7, 3, 5]))
    assert len({id(function) for _, function in asked}) == len({sizes for sizes, _ in asked}) == 3


def test_what_is_trained_soon_is_the_next_size_once_half_of_the_units_between_are_dead(digits):
    now = units(digits, flags(), flags(*range(8)))  # of 40 and of 32 units; the next sizes are 32 and 16
    for live, wanted in [(37, (40, 32)), (36, (32, 32)), (25, (32, 32)), (24, (32, 16))]:
        both = {place: {"Dense_0": np.arange(40) < live, "Dense_1": np.ones(30, bool)} for place in range(2)}
        soon = now.soon(both, samples=1)
        assert tuple(one.sizes["Dense_0"] for one in soon.seeds) == wanted, live
    assert now.soon({}, samples=1) is now
    few = {0: {"Dense_0": np.arange(40) < 33, "Dense_1": np.ones(30, bool)}}
    assert units(digits, flags(), worth=1e12).soon(few, samples=1).seeds[0].sizes["Dense_0"] == 40
