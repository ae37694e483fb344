import json
import os
import subprocess
import sys

import pytest

from ssm.errors import UserError
from ssm.runs.lock import held, in_use

HOLDS = """
import sys, time
from pathlib import Path
from ssm.runs.lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path):
    """Another program that holds a folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_held_folder_is_refused_and_its_holder_named(tmp_path, other):
    folder = tmp_path / "run"
    assert in_use(folder)
    with pytest.raises(UserError, match=rf"run is in use by process {other.pid} on .*; wait for its end, or choose"):
        held(folder).__enter__()
    assert json.loads((folder / ".holder.json").read_bytes())["pid"] == other.pid


def test_the_lock_dies_with_its_owner(tmp_path, other):
    other.kill()
    other.wait()
    assert not in_use(tmp_path / "run")
    with held(tmp_path / "run") as folder:
        assert json.loads((folder / ".holder.json").read_bytes())["pid"] == os.getpid()
    assert not in_use(folder) and not (folder / ".holder.json").exists()


def test_a_folder_that_can_not_be_made_is_the_users_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be written: .*; choose another --out"):
        held(tmp_path / "file" / "run").__enter__()
