"""Long runs as a user has them: stopped by signals, killed, and shared by processes."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ssm.runs.folder import read_summary
from ssm.runs.history import read_history
from ssm.runs.journal import read_journal
from ssm.runs.mask_file import load_masks
from ssm.runs.status import status
from tests.support.programs import ROOT, Place

RECIPE = ("--model=fcn", "--dataset=mnist5k", "--width=0.1", "--epochs=5000")


def start(*arguments):
    """Start train.py; what it prints on either stream comes together."""
    return subprocess.Popen(
        [sys.executable, "-u", ROOT / "experiments" / "train.py", *RECIPE, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def read_to(process, text):
    """Read what a process prints up to a line with a text."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError("".join(lines))


def epochs_of(out):
    return [event for folder in out.iterdir() for event in read_journal(folder) if event["event"] == "epoch"]


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_a_signal_saves_the_epoch_and_says_how_to_go_on(tmp_path, number, status):
    process = start("--seeds=1", f"--out={tmp_path}")
    read_to(process, "epoch 1/5000")
    process.send_signal(number)
    printed = process.communicate(timeout=60)[0]
    assert process.returncode == status, printed
    assert f"{number.name}: the running epoch is finished and saved first" in printed
    (epoch,) = re.findall(rf"train.py: stopped by {number.name}, saved after epoch (\d+)", printed)
    (command,) = re.findall(r"To resume: python (.*)", printed)
    assert command.endswith(f"{' '.join(RECIPE)} --seeds=1 --out={tmp_path}")
    assert len(epochs_of(tmp_path)) == int(epoch)
    again = start("--seeds=1", f"--out={tmp_path}")
    read_to(again, f"resuming 1 seed after epoch {epoch}")
    again.kill()
    again.communicate()


def test_without_a_reader_training_goes_on_and_a_lost_terminal_saves_it(tmp_path):
    process = start("--seeds=1", f"--out={tmp_path}")
    read_to(process, "epoch 1/5000")
    process.stdout.close()
    before = len(epochs_of(tmp_path))
    while len(epochs_of(tmp_path)) < before + 20:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 129
    (folder,) = tmp_path.iterdir()
    assert list(folder.glob("checkpoints/*.ckpt")) and status(folder).state == "stopped"


@pytest.mark.slow
def test_killed_runs_end_bit_identical(tmp_path):
    place = Place(tmp_path, tmp_path)
    done = place.program("kill_test.py", "--runs=2", "--kills=2", "--epochs=8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "2 of 2 runs end bit-identical"


@pytest.fixture
def coordinator():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def both(coordinator, *arguments):
    shared = ("--distributed", f"--coordinator={coordinator}", "--processes=2", *arguments)
    return [start(*shared, f"--process={number}") for number in (0, 1)]


def content(out):
    (folder,) = Path(out).iterdir()
    rows = [{**row, "seconds": 0} for row in read_history(folder / "history.csv")]
    masks = [
        {name: mask.tobytes() for name, mask in load_masks(path).items()} for path in sorted(folder.glob("masks/*"))
    ]
    return rows, masks, read_summary(folder)["test_accuracy"]


@pytest.mark.slow
def test_two_processes_share_the_seeds_of_a_run(tmp_path, coordinator):
    short = ("--seeds=3", "--epochs=3")
    processes = both(coordinator, *short, f"--out={tmp_path / 'two'}")
    printed = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], printed
    assert "3 seeds, 3 epochs" in printed[0] and "process 1 has finished its seeds" in printed[1]
    alone = start(*short, f"--out={tmp_path / 'one'}")
    alone.communicate(timeout=120)
    assert content(tmp_path / "two") == content(tmp_path / "one")
    assert not list(tmp_path.glob("two/*/parts/*")) and not list(tmp_path.glob("two/*/checkpoints/*"))


@pytest.mark.slow  # 1 is missed after 20 s; that both end is tested with an error of process 0
@pytest.mark.parametrize("dies", [0, 1])
def test_when_one_process_dies_the_others_end_within_a_minute_and_a_new_start_goes_on(tmp_path, coordinator, dies):
    shared = ("--seeds=2", "--checkpoint-every=1", f"--out={tmp_path}")
    processes = both(coordinator, *shared)
    for process in processes:
        read_to(process, "epoch 1/5000")
    processes[dies].kill()
    started = time.monotonic()
    printed = processes[1 - dies].communicate(timeout=60)[0]
    assert time.monotonic() - started < 60 and processes[1 - dies].returncode != 0
    assert "This most likely indicates that another task died" in printed
    processes[dies].communicate()
    again = start(*shared)
    read_to(again, "resuming 1 seed after epoch")
    again.kill()
    again.communicate()


@pytest.mark.slow  # each by itself is above
def test_a_signal_to_both_processes_saves_both(tmp_path, coordinator):
    processes = both(coordinator, "--seeds=2", f"--out={tmp_path}")
    for process in processes:
        read_to(process, "epoch 1/5000")
    for process in processes:
        process.send_signal(signal.SIGTERM)
    printed = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [143, 143], printed
    assert len(list(tmp_path.glob("*/checkpoints/*.ckpt"))) == 2


def test_an_error_of_process_0_ends_both_and_is_said(tmp_path, coordinator):
    (tmp_path / "file").write_text("")
    processes = both(coordinator, "--seeds=2", f"--out={tmp_path / 'file'}")
    printed = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [2, 2], printed
    assert "cannot be written" in printed[0] and "process 0 can't begin; its message says why" in printed[1]


@pytest.mark.slow
def test_processes_with_other_options_do_not_train_side_by_side(tmp_path, coordinator):
    shared = ("--seeds=2", f"--out={tmp_path}", "--distributed", f"--coordinator={coordinator}", "--processes=2")
    processes = [start(*shared, "--process=0"), start(*shared, "--process=1", "--momentum=0.5")]
    printed = [process.communicate(timeout=60)[0] for process in processes]
    assert processes[1].returncode == 2 and processes[0].returncode != 0
    assert "process 1 has other options or other data than process 0" in printed[1]
