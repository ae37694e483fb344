import os

import chex
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssm.errors import UserError
from ssm.runs import checkpoint
from ssm.runs.checkpoint import load, newest, remove_finished, save
from ssm.training.snapshot import Failure
from tests.support.snapshots import MEMBERS, snapshot

OURS, OTHER = (b"ssm-checkpoint %d " % (checkpoint.VERSION + more) for more in (0, 1))


def same(one, other):
    for name in ("members", "epoch", "frozen", "plateaus", "failures", "history"):
        assert getattr(one, name) == getattr(other, name), name
    chex.assert_trees_all_equal(one.arrays, other.arrays, strict=True)


@pytest.fixture
def logged():
    return []


def test_what_is_loaded_is_what_was_saved(tmp_path):
    found, identity = load(save(tmp_path, snapshot(), "data"))
    same(found, snapshot())
    assert identity == "data"


def test_a_part_keeps_what_belongs_to_its_members():
    part = snapshot().of(MEMBERS[1:])
    assert (part.members, part.frozen) == (MEMBERS[1:], ("b",))
    assert part.failures == {0: Failure(1, "no weight is left in Dense_1")}
    np.testing.assert_array_equal(part.arrays["['net']['kernel']"], [[[3, 3.5, 4], [4.5, 5, 5.5]]])
    assert part.history == [[{"seed": 1, "epoch": 1, "train_loss": 1 / 3}]]
    same(snapshot().of(MEMBERS[::-1]).of(MEMBERS), snapshot())


def test_the_last_two_of_each_group_are_kept_whatever_the_clock_says(tmp_path, logged):
    for epoch in (1, 2, 3, 10):
        path = save(tmp_path, snapshot(epoch), "data")
        os.utime(path, (2e9 - epoch, 2e9 - epoch))  # the clock runs backwards
    other = save(tmp_path, snapshot(1, MEMBERS[:1]), "data")
    names = {path.name.rsplit("-", 1)[1] for path in tmp_path.iterdir() if path != other}
    assert names == {"00003.ckpt", "00010.ckpt"} and other.exists()
    assert sorted(one.epoch for one in newest(tmp_path, "data", logged.append)) == [1, 10]
    assert not logged


def test_a_folder_that_is_not_there_holds_nothing(tmp_path, logged):
    assert newest(tmp_path / "checkpoints", "data", logged.append) == []


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return save(tmp_path_factory.mktemp("whole"), snapshot(), "data").read_bytes()


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_flipped_bit_or_missing_end_is_found(whole, tmp_path_factory, data):
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        damaged = whole[:place]
    else:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.getbasetemp() / "damaged.ckpt"
    path.write_bytes(damaged)
    with pytest.raises((ValueError, UserError)):  # a flipped bit in the version makes another version of it
        load(path)


def test_a_damaged_file_is_passed_over_and_said(tmp_path, logged):
    save(tmp_path, snapshot(1), "data")
    path = save(tmp_path, snapshot(2), "data")
    path.write_bytes(path.read_bytes()[:-1])
    (found,) = newest(tmp_path, "data", logged.append)
    assert found.epoch == 1
    (line,) = logged
    assert line.startswith(f"warning: {path} is damaged (") and line.endswith("it is skipped")
    assert path.with_suffix(".damaged").exists()


def test_damaged_files_take_no_whole_ones_place(tmp_path, logged):
    for epoch in (10, 20):
        path = save(tmp_path, snapshot(epoch), "data")
    path.write_bytes(b"")
    assert newest(tmp_path, "data", logged.append)[0].epoch == 10
    for epoch in (11, 12):
        save(tmp_path, snapshot(epoch), "data")
        assert newest(tmp_path, "data", logged.append)[0].epoch == epoch
    assert len(list(tmp_path.glob("*.ckpt"))) == 2
    remove_finished(tmp_path, MEMBERS)
    assert not list(tmp_path.iterdir())


def test_a_later_file_of_another_version_does_not_displace_ours(tmp_path, logged):
    path = save(tmp_path, snapshot(9), "data")
    path.write_bytes(path.read_bytes().replace(OURS, OTHER))
    for epoch in (1, 2, 3):
        save(tmp_path, snapshot(epoch), "data")
        assert newest(tmp_path, "data", logged.append)[0].epoch == epoch
    assert path.exists() and len(list(tmp_path.iterdir())) == 3


def test_with_every_file_damaged_training_starts_over_and_says_so(tmp_path, logged):
    path = save(tmp_path, snapshot(1), "data")
    path.write_bytes(b"")
    assert newest(tmp_path, "data", logged.append) == [] and len(logged) == 1


def test_pickles_are_never_read(tmp_path):
    arrays = {"about": np.array([{"a": 1}], dtype=object)}
    path = tmp_path / "evil.npz"
    np.savez(path, **arrays)
    payload = path.read_bytes()
    header = f"ssm-checkpoint {checkpoint.VERSION} {checkpoint.hashlib.sha256(payload).hexdigest()} {len(payload)}\n"
    path.write_bytes(header.encode() + payload)
    with pytest.raises(ValueError, match="allow_pickle"):
        load(path)


def test_another_version_is_not_read_nor_lost(tmp_path, logged):
    save(tmp_path, snapshot(1), "data")
    path = save(tmp_path, snapshot(2), "data")
    path.write_bytes(path.read_bytes().replace(OURS, OTHER))
    (found,) = newest(tmp_path, "data", logged.append)
    assert found.epoch == 1 and f"of version {checkpoint.VERSION + 1} of the format; this program reads version {checkpoint.VERSION}" in logged[0]
    next(one for one in tmp_path.iterdir() if one != path).unlink()
    with pytest.raises(UserError, match="use what wrote it, or remove .* to start these seeds over"):
        newest(tmp_path, "data", logged.append)
    assert path.exists()


def test_other_data_is_refused(tmp_path, logged):
    save(tmp_path, snapshot(1), "data")
    with pytest.raises(UserError, match="other data of the same name"):
        newest(tmp_path, "other data", logged.append)


def test_files_of_finished_groups_are_removed(tmp_path):
    two, one = save(tmp_path, snapshot(), "data"), save(tmp_path, snapshot(members=MEMBERS[:1]), "data")
    (tmp_path / "0123456789ab-00001.ckpt").write_bytes(b"damaged")
    remove_finished(tmp_path, MEMBERS[:1])
    assert two.exists() and not one.exists() and len(list(tmp_path.iterdir())) == 2
