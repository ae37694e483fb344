"""The training program where a user's machine is not as usual."""

import os
import subprocess
import sys
import tempfile

import pytest

from tests.support.programs import ROOT, without_settings

STRANGER = 54321
AS_STRANGER = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
# The interpreter may lie where others may not read.
AS_STRANGER += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


@pytest.fixture
def elsewhere():
    """A folder that anybody may enter."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield name


def test_a_user_id_without_account_and_home_trains(elsewhere):
    try:
        subprocess.run([*AS_STRANGER, sys.executable, "-c", ""], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root can act as another user, by util-linux's setpriv")
    kept = {name: value for name, value in without_settings().items() if name not in ("HOME", "XDG_CACHE_HOME")}
    more = {"SSM_OFFLINE": "1", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*AS_STRANGER, sys.executable, ROOT / "experiments" / "train.py", "--dry-run", "--seeds=1"]
    done = subprocess.run(command, cwd=elsewhere, env=kept | more, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert "data: mnist5k" in done.stdout and "weights under the mask: 266,200" in done.stdout
