"""The programs, run as a user runs them: by path, from another folder."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


def without_settings():
    """Return the environment without what sets these programs or their libraries."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SSM_", "TFDS_", "XLA_"))}


class Place(NamedTuple):
    """A folder to run in, with the data beside."""

    here: Path
    data: Path

    def program(self, name, *arguments, python=()):
        """Run experiments/NAME here; the user's own settings and folders are out of its sight."""
        outside = {"HOME": str(self.here.parent), "SSM_CACHE_DIR": str(self.here.parent), "SSM_OFFLINE": "1"}
        return subprocess.run(
            [sys.executable, *python, str(ROOT / "experiments" / name), *map(str, arguments)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=self.here,
            env=without_settings() | outside | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"},
            timeout=300,
            check=False,
        )

    def refusal(self, name, *arguments):
        """Return the message of a program that must refuse its options: status 2, and nothing else printed."""
        done = self.program(name, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Traceback" not in done.stderr
        return done.stderr
