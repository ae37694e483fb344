"""In processes of their own: signals go to a whole process."""

import signal
import subprocess
import sys
import time

import pytest

from ssm.runs.signals import SIGNALS, watched

PROGRAM = """
import sys, time
from ssm.runs.signals import Interrupts, watched
with watched("the epoch ends first") as interrupts:
    print("ready", flush=True)
    busy = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < busy and not (sys.argv[2] == "polite" and interrupts.caught):
        sum(range(1000))
print("caught", interrupts.caught, flush=True)
"""


def start(seconds, manners, program=PROGRAM, shell=()):
    process = subprocess.Popen(
        [*shell, sys.executable, "-c", program, str(seconds), manners],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.Signals(number) for number in SIGNALS])
def test_the_first_signal_is_noted_and_said(number):
    process = start(20, "polite")
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert out == f"caught {int(number)}\n"
    assert err == f"{number.name}: the epoch ends first\n"


def test_one_signal_passed_on_twice_is_one():
    process = start(2, "rude")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0 and out == f"caught {int(signal.SIGTERM)}\n"


def test_the_second_ends_the_program_at_once():
    process = start(30, "rude")
    process.send_signal(signal.SIGINT)
    time.sleep(1.5)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130 and time.monotonic() - started < 5
    assert err.splitlines()[1] == "stopped at once; the last checkpoint stands"


def test_the_handlers_before_are_back_afterwards():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with watched("") as interrupts:
        assert signal.getsignal(signal.SIGTERM) is not before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert interrupts.caught is None


def test_what_nohup_has_a_program_ignore_stays_ignored():
    process = start(1.5, "polite", shell=("sh", "-c", 'trap "" HUP; exec "$0" "$@"'))
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "caught None\n", "")


def test_a_signal_that_its_user_handles_is_left_to_him():
    own = "import signal\nsignal.signal(signal.SIGUSR1, lambda number, frame: print('own', flush=True))\n"
    process = start(1.5, "polite", own + PROGRAM)
    process.send_signal(signal.SIGUSR1)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "own\ncaught None\n", "")


def test_a_signal_is_noted_where_nobody_reads_that_it_was():
    process = start(20, "polite")
    process.stderr.close()
    process.send_signal(signal.SIGHUP)
    with process.stdout as printed:
        assert printed.read() == f"caught {int(signal.SIGHUP)}\n"
    assert process.wait(20) == 0


WAITS = """
import sys, time
from ssm.runs.signals import ending
with ending("nothing was lost", ctrl_c=sys.argv[2] == "all"):
    try:
        print("ready", flush=True)
        time.sleep(float(sys.argv[1]))
    except BaseException:  # an exception could be lost like this
        print("swallowed")
print("after", flush=True)
time.sleep(1)
"""


@pytest.mark.parametrize("number", [signal.Signals(number) for number in SIGNALS])
def test_outside_training_a_signal_ends_the_program_with_a_message(number):
    process = start(20, "all", WAITS)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (128 + number, "", f"stopped by {number.name}; nothing was lost\n")


def test_ctrl_c_may_be_left_to_python():
    process = start(20, "others", WAITS)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[0] == "swallowed\nafter\n" and process.returncode == 0


def test_a_signal_as_the_program_ends_changes_no_status():
    process = start(0, "all", WAITS)
    assert process.stdout.readline() == "after\n"
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=20)
    assert process.returncode == 0
