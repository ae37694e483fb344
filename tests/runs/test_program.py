"""How programs end: by errors that are not ours, and where nobody reads what they print.  In processes of their own."""

import os
import subprocess
import sys

import pytest

from ssm.errors import UserError
from ssm.runs.program import REPORT, explained
from tests.support.programs import ROOT

PROGRAM = """
import sys
from dataclasses import dataclass
from pathlib import Path
from ssm.runs.program import run_program

@dataclass(frozen=True)
class Options:
    do: str = "print"

def main(options):
    if options.do == "fail":
        {}["our bug"]
    with open("done", "w") as file:
        for number in range(3000):
            print("line", number)
            print("line", number, file=sys.stderr)
        file.write("whole")

run_program(main, Options, trains=TRAINS)
"""


def start(folder, *arguments, trains, shell=(), **streams):
    (folder / "program.py").write_text(PROGRAM.replace("TRAINS", str(trains)))
    command = [*shell, sys.executable, "program.py", *arguments]
    return subprocess.Popen(command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, **streams)


def without_reader(folder, *arguments, trains):
    """Return the status of a program whose output nobody reads, and what it prints on stderr."""
    read, write = os.pipe()
    os.close(read)
    with open(folder / "stderr", "w") as stderr:
        process = start(folder, *arguments, trains=trains, stdout=write, stderr=stderr)
    os.close(write)
    return process.wait(60), (folder / "stderr").read_text()


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_without_a_reader_training_goes_on_and_other_programs_end_quietly(tmp_path, arguments):
    status, stderr = without_reader(tmp_path, *arguments, trains=False)
    assert status == 141 and "Traceback" not in stderr and "Broken" not in stderr
    status, stderr = without_reader(tmp_path, *arguments, trains=True)
    assert status == 0 and "Traceback" not in stderr and "Broken" not in stderr
    assert arguments or (tmp_path / "done").read_text() == "whole"


def test_a_full_disk_under_the_log_ends_no_training_and_is_an_error_elsewhere(tmp_path):
    with open("/dev/full", "w") as full:
        process = start(tmp_path, trains=True, stdout=full, stderr=full)
        assert process.wait(60) == 0 and (tmp_path / "done").read_text() == "whole"
        process = start(tmp_path, trains=False, stdout=full, stderr=subprocess.PIPE)
        lines = process.communicate(timeout=60)[1].decode().splitlines()
    assert process.returncode == 2
    assert lines[-1] == "program.py: standard output cannot be written: No space left on device"


def test_closed_streams_get_nothing_into_other_files(tmp_path):
    shell = ("sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-')
    assert start(tmp_path, trains=True, shell=shell).wait(60) == 0
    assert (tmp_path / "done").read_text() == "whole"


def test_a_bug_of_ours_keeps_its_traceback(tmp_path):
    process = start(tmp_path, "--do=fail", trains=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = process.communicate(timeout=60)[1].decode().splitlines()
    assert process.returncode == 1
    assert lines[0].startswith("Traceback") and lines[-2:] == ["KeyError: 'our bug'", REPORT]


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (UserError("do that"), 2, "do that"),
        (PermissionError(13, "Permission denied", "/a/b"), 2, "/a/b: Permission denied; see to the right to it"),
        (IsADirectoryError(21, "Is a directory", "/a"), 2, "/a: Is a directory; name a file"),
        (OSError(28, "No space left on device"), 2, "No space left on device; make room"),
        (MemoryError(), 2, "memory does not suffice (MemoryError)"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes."), 2, "a smaller --batch-size"),
        (KeyboardInterrupt(), 130, "stopped; what was saved stands"),
    ],
)
def test_what_is_not_our_bug_is_one_message(error, status, text):
    found = explained(error)
    assert found is not None and found[0] == status and text in found[1] and "\n" not in found[1]


@pytest.mark.parametrize("error", [KeyError("a"), TypeError(), OSError("odd"), RuntimeError("INTERNAL"), SystemExit(3)])
def test_what_may_be_our_bug_is_not_explained_away(error):
    assert explained(error) is None
