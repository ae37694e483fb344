"""What may befall a long run: disks, folders, other programs.  Nothing that was whole before is lost."""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path

import jax
import pytest

from ssm.errors import UserError
from ssm.runs.journal import read_journal
from ssm.runs.lock import held
from ssm.runs.names import run_name
from ssm.runs.status import status
from ssm.training import devices
from ssm.training.devices import environment
from tests.support.runs import Crash, after_epoch, content, crashing, run_config, same_content, short
from tests.support.quick import quick

SEEDS = [0, 1]
NOBODY = 65534


@pytest.fixture
def disk(tmp_path):
    """A small file system of its own."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", tmp_path], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("a file system can be mounted only by root, outside most containers")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def at(epoch, do):
    """Return options of a run with a checkpoint an epoch, that does something after one of them."""
    return after_epoch(lambda now: do() if now.epoch == epoch else None)


@pytest.fixture(scope="module")
def whole(digits, tmp_path_factory):
    return content(run_config(short(digits), digits, SEEDS, out=tmp_path_factory.mktemp("whole")))


def same(run, whole):
    same_content(content(run), whole)


def test_a_full_disk_loses_nothing(digits, disk, whole):
    logged = []

    def fill():
        with open(disk / "other", "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            while True:
                file.write(bytes(4096))

    with pytest.raises(UserError, match=r"cannot be written: No space left .*: make room, and give the same command"):
        run_config(short(digits), digits, SEEDS, out=disk, **at(3, fill), log=logged.append)
    assert any("no checkpoint of epoch 3" in line and "No space left" in line for line in logged)
    run_folder = disk / run_name(short(digits).as_dict())
    assert not (run_folder / "summary.json").exists() and not list(run_folder.rglob("*.tmp"))
    (disk / "other").unlink()
    logged.clear()
    run = run_config(short(digits), digits, SEEDS, out=disk, log=logged.append)
    assert "resuming 2 seeds after epoch 2" in logged
    same(run, whole)


@pytest.fixture
def folder_of_everyone(monkeypatch):
    """A folder that another user may enter, and functions that take from this process the right to write, and back."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)

        version = cache(metadata.version)
        monkeypatch.setattr(devices.metadata, "version", version)
        environment()  # the packages' own files may be out of the other user's reach

        def lock():
            for path in [Path(name), *(path for path in Path(name).rglob("*") if path.is_dir())]:
                os.chmod(path, 0o555)
            if root:
                os.seteuid(NOBODY)  # nothing is read-only to root

        def unlock():
            if root:
                os.seteuid(0)
            for path in [Path(name), *Path(name).rglob("*")]:
                if path.is_dir():
                    os.chmod(path, 0o755)

        root = os.geteuid() == 0
        yield Path(name), lock, unlock
        unlock()


def test_a_folder_that_becomes_read_only_loses_nothing(digits, folder_of_everyone, whole):
    folder, lock, unlock = folder_of_everyone
    logged = []
    with pytest.raises(UserError, match="cannot be written: Permission denied"):
        run_config(short(digits), digits, SEEDS, out=folder, **at(2, lock), log=logged.append)
    assert any("no checkpoint of epoch 2" in line and "Permission denied" in line for line in logged)
    with pytest.raises(UserError, match="cannot be written: Permission denied; choose another --out"):
        run_config(short(digits), digits, SEEDS, out=folder)
    unlock()
    logged.clear()
    run = run_config(short(digits), digits, SEEDS, out=folder, log=logged.append)
    assert "resuming 2 seeds after epoch 1" in logged
    same(run, whole)


@pytest.mark.slow
def test_a_group_too_large_for_the_memory_is_halved_and_goes_on_from_its_checkpoint(digits, tmp_path, whole):
    def fill(now):
        if len(now.seeds) > 1 and now.epoch == 3:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")

    logged = []
    run = run_config(short(digits), digits, SEEDS, out=tmp_path, **after_epoch(fill), log=logged.append)
    (said,) = [line for line in logged if line.startswith("warning: memory does not suffice for 2 seeds at once")]
    assert "1 are trained together now (JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory" in said
    assert logged[logged.index(said) + 1 :] == ["resuming 1 seed after epoch 2"] * 2
    same(run, whole)
    events = [event["event"] for event in read_journal(run.folder) if event["event"] in ("start", "halved", "end")]
    assert events == ["start", "halved", "start", "end"]
    assert status(run.folder).state == "finished"


def test_a_folder_that_vanishes_is_made_again(digits, tmp_path, whole):
    run_folder = tmp_path / run_name(short(digits).as_dict())
    run = run_config(
        short(digits), digits, SEEDS, out=tmp_path, **at(2, lambda: shutil.rmtree(run_folder))
    )
    same(run, whole)
    assert run_config(short(digits), digits, SEEDS, out=tmp_path).finished_seeds() == SEEDS


@pytest.mark.parametrize("damage", quick(["cut off", "flipped", "both"]))
def test_after_a_damaged_checkpoint_the_one_before_is_used(digits, tmp_path, whole, damage):
    with pytest.raises(Crash):
        run_config(short(digits), digits, SEEDS, out=tmp_path, **crashing(4))
    files = sorted(tmp_path.glob("*/checkpoints/*.ckpt"))
    assert [path.name[-10:] for path in files] == ["00002.ckpt", "00003.ckpt"]
    for path in files if damage == "both" else files[1:]:
        data = bytearray(path.read_bytes())
        if damage == "flipped":
            data[len(data) // 2] ^= 16
        path.write_bytes(data if damage == "flipped" else data[: len(data) // 2])
    logged = []
    run = run_config(short(digits), digits, SEEDS, out=tmp_path, log=logged.append)
    assert any(line.startswith(f"warning: {files[1]} is damaged") for line in logged)
    assert any("resuming 2 seeds after epoch 2" in line for line in logged) == (damage != "both")
    same(run, whole)


def test_two_programs_do_not_train_in_one_folder(digits, tmp_path, whole):
    run_folder = tmp_path / run_name(short(digits).as_dict())
    with held(run_folder), pytest.raises(UserError, match="is in use by process"):
        run_config(short(digits), digits, SEEDS, out=tmp_path)
    same(run_config(short(digits), digits, SEEDS, out=tmp_path), whole)
