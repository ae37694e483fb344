"""Kill runs in every way at random moments, resume them, and compare them bit for bit with one never disturbed.

- python experiments/kill_test.py                        100 runs, each disturbed twice
- python experiments/kill_test.py --runs=4 --kills=1

Each run is `train.py`'s, of a small FCN on the digits that come with a dependency, with a checkpoint after every epoch.
It is sent SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 or SIGKILL, at times two in a row, or the program that reads its
output is killed, and it has to go on: before its first epoch, after some, or as it writes.  Then the same command is
given once more.  Prints a line a run, and how each way ended; exit status 1 if a run differs, or ended with a traceback
or another status than it should.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ssm.runs.folder import read_summary
from ssm.runs.history import read_history
from ssm.runs.mask_file import load_masks
from ssm.runs.program import run_program
from ssm.runs.signals import SIGNALS
from ssm.training.devices import cores

TRAIN = Path(__file__).with_name("train.py")
KINDS = (*(signal.Signals(number).name for number in SIGNALS), "SIGKILL", "closed pipe")
SLOW_START = 6.0  # seconds within which a start is disturbed that is to be so before its first epoch
PATIENCE = 600.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """Kill runs, resume them, and compare."""

    runs: int = 100
    """How many runs; run number k has seeds 2 k and 2 k + 1."""
    kills: int = 2
    """How often each is disturbed."""
    epochs: int = 20
    """Epochs of each."""
    seed: int = 0
    """Of the kinds and the moments."""
    jobs: int = cores()
    """Runs at once."""


@dataclass
class Disturbed:
    """What befell a start of a run: the kinds, the moment in words, and the status of its end."""

    kinds: list[str] = field(default_factory=list)
    moment: str = ""
    status: int = 0
    allowed: set[int] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{' and '.join(self.kinds)} {self.moment}: {self.status}"


def start(out: Path, seeds: str, options: Options) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
    """Start or resume a run, and a program that reads what it prints and appends it to a file."""
    what = ["--model=fcn", "--dataset=mnist5k", "--width=0.2", f"--epochs={options.epochs}", "--checkpoint-every=1"]
    with open(out.with_suffix(".txt"), "ab") as log:
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=log)
    assert reader.stdin is not None
    with reader.stdin as pipe:
        command = [sys.executable, TRAIN, *what, f"--seeds={seeds}", f"--out={out}"]
        return subprocess.Popen(command, stdout=pipe, stderr=pipe), reader


def finish(out: Path, seeds: str, options: Options) -> str:
    """Run a run to its end; return what it printed if that failed."""
    process, reader = start(out, seeds, options)
    status = process.wait()
    reader.wait()
    return "" if status == 0 else f"status {status}: {out.with_suffix('.txt').read_text()[-2000:]}"


def lines(out: Path, kind: bytes = b"") -> int:
    """Return how many lines the journals of a run have, or how many of a kind."""
    return sum(path.read_bytes().count(b'"event": "' + kind) for path in out.glob("*/journal.jsonl"))


def finished(out: Path) -> bool:
    """Say whether a run's seeds are saved."""
    return any(out.glob("*/summary.json"))


def writing(out: Path) -> set[Path]:
    """Return the temporary files of a run that is just writing, or was when it was killed."""
    return {path for path in out.rglob(".*.tmp") if "checkpoints" in path.parts}


def await_moment(process: subprocess.Popen[bytes], out: Path, options: Options, moment: random.Random) -> str:
    """Return at a random moment of a start, and say which."""
    before, epochs = writing(out), lines(out, b"epoch")
    what = moment.choice(["early", "epochs", "epochs", "write"])
    if what == "early":
        time.sleep(moment.uniform(0, SLOW_START))
    else:
        wanted = epochs + 2 * moment.randint(1, max(1, options.epochs // (options.kills + 1)))
        while process.poll() is None and lines(out, b"epoch") < wanted:
            time.sleep(0.002)
        if what == "epochs":
            time.sleep(moment.uniform(0, 0.2))
        while what == "write" and process.poll() is None and not writing(out) - before:
            pass
    new = (lines(out, b"epoch") - epochs) // 2
    return "in a write" if writing(out) - before else f"after {new} epochs" if new else "before the first epoch"


def disturb(out: Path, seeds: str, options: Options, moment: random.Random) -> Disturbed:
    """Start a run, disturb it at a random moment, and return how it ended."""
    found, began = Disturbed(), lines(out)
    process, reader = start(out, seeds, options)
    first = moment.choice(KINDS)
    kinds = [first]
    if first == "closed pipe":
        kinds += moment.choice([[], [moment.choice(KINDS[:-1])]])  # it goes on to its end, or is killed later
    elif moment.random() < 0.25:
        kinds += [moment.choice(KINDS[:-1])]
    for number, kind in enumerate(kinds):
        if number == 0:
            found.moment = await_moment(process, out, options, moment)
        else:
            time.sleep(moment.uniform(0, 2))
        if process.poll() is not None:
            break
        found.kinds.append(kind)
        ready = lines(out) > began  # before the program's own code begins a signal has Python's or the system's action
        if kind == "closed pipe":
            reader.kill()
            continue
        one = signal.Signals[kind]
        process.send_signal(one)
        found.allowed |= {-one} if kind == "SIGKILL" else {128 + one}
        # Before the program's own code begins, and as the interpreter ends after an earlier signal.
        found.allowed |= {-one} if not ready or (number and kind in ("SIGINT", "SIGTERM")) else set()
    found.status = process.wait(PATIENCE)
    reader.wait()
    if finished(out):  # meanwhile, or before
        found.allowed |= {0, *(-signal.Signals[kind] for kind in found.kinds if kind in ("SIGINT", "SIGTERM"))}
    if not found.kinds:
        found.kinds, found.moment = ["nothing"], "ended before"
    return found


def content(out: Path, seeds: list[int]) -> Any:
    """Return what some seeds of a run ended with, without the seconds it took, and what is left of its checkpoints."""
    (folder,) = (path for path in out.iterdir() if path.is_dir())
    rows = [{**row, "seconds": 0} for row in read_history(folder / "history.csv") if row["seed"] in seeds]
    summary = read_summary(folder)
    names = ("test_accuracy", "remaining_weights")
    finals = {name: [summary[name]["values"][str(seed)] for seed in seeds] for name in names}
    masks = [load_masks(folder / "masks" / f"seed-{seed:04d}.npz") for seed in seeds]
    left = [path.name for path in folder.rglob("*") if path.suffix in (".ckpt", ".tmp")]
    return rows, finals, masks, left


def one_run(number: int, folder: Path, options: Options) -> tuple[str, list[Disturbed]]:
    """Disturb run number `number` and end it; return what is wrong, and what befell it."""
    moment = random.Random(f"{options.seed} {number}")
    out, seeds = folder / f"run-{number}", [2 * number, 2 * number + 1]
    out.mkdir()
    text = ",".join(map(str, seeds))
    befell = [disturb(out, text, options, moment) for _ in range(options.kills)]
    if wrong := [str(one) for one in befell if one.status not in one.allowed]:
        return f"unexpected status, {wrong}: {out.with_suffix('.txt').read_text()[-2000:]}", befell
    printed = out.with_suffix(".txt").read_text()
    if "Traceback" in printed and "KeyboardInterrupt" not in printed:  # Python's own, of Ctrl-C as it starts
        return f"a traceback: {printed[-2000:]}", befell
    if failed := finish(out, text, options):
        return f"could not be resumed, {failed}", befell
    try:
        np.testing.assert_equal(content(out, seeds), content(folder / "whole", seeds))
    except AssertionError as error:
        return f"differs: {str(error)[:500]}", befell
    return "", befell


def main(options: Options) -> None:
    # What nohup or a shell has this program ignore, its children would ignore, too.
    for number in SIGNALS:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(options.jobs) as pool:
        folder = Path(name)
        # All runs compile the same programs.
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder / "compiled"))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
        (folder / "whole").mkdir()
        if failed := finish(folder / "whole", str(2 * options.runs), options):
            print(f"the undisturbed run failed, {failed}")
            sys.exit(1)
        same, times, ends = 0, Counter[str](), dict[str, Counter[int]]()
        results = pool.map(lambda number: one_run(number, folder, options), range(options.runs))
        for number, (wrong, befell) in enumerate(results):
            same += not wrong
            print(f"run {number}: {wrong or 'the same'}, {json.dumps([str(one) for one in befell])}", flush=True)
            for one in befell:
                times.update(one.kinds)
                ends.setdefault(one.kinds[-1], Counter())[one.status] += 1
    for kind in sorted(times):
        statuses = ", ".join(f"{status} ({count})" for status, count in ends.get(kind, Counter()).most_common())
        print(f"{kind}: {times[kind]}; where it was the last, status {statuses}")
    print(f"{same} of {options.runs} runs end bit-identical")
    sys.exit(0 if same == options.runs else 1)


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
