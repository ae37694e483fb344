"""Kill runs at random moments, resume them, and compare them bit for bit with runs that were never killed.

- python experiments/kill_test.py                        50 runs, each killed three times
- python experiments/kill_test.py --runs=4 --kills=2

Each run is `train.py`'s, of a small FCN on the digits that come with a dependency, with a checkpoint after every epoch;
it is killed with SIGKILL, and every fourth time as it writes.  Prints a line a run; exit status 1 if one differs.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ssm.runs.folder import read_summary
from ssm.runs.history import read_history
from ssm.runs.mask_file import load_masks
from ssm.runs.program import run_program
from ssm.training.devices import cores

TRAIN = Path(__file__).with_name("train.py")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Kill runs, resume them, and compare."""

    runs: int = 50
    """How many runs; run number k has seeds 2 k and 2 k + 1."""
    kills: int = 3
    """How often each is killed."""
    epochs: int = 40
    """Epochs of each."""
    seed: int = 0
    """Of the moments."""
    jobs: int = cores()
    """Runs at once."""


def start(out: Path, number: int, options: Options) -> subprocess.Popen[bytes]:
    """Start or resume a run, in a process of its own; what it prints is appended to a file."""
    what = ["--model=fcn", "--dataset=mnist5k", "--width=0.2", f"--epochs={options.epochs}", "--checkpoint-every=1"]
    which = [f"--seeds={2 * number},{2 * number + 1}", f"--out={out}"]
    with open(out.with_suffix(".txt"), "ab") as log:
        return subprocess.Popen([sys.executable, TRAIN, *what, *which], stdout=log, stderr=log)


def epochs_done(out: Path) -> int:
    """Return how many lines about epochs the journals of a run have."""
    return sum(path.read_bytes().count(b'"event": "epoch"') for path in out.glob("*/journal.jsonl"))


def writing(out: Path) -> list[Path]:
    """Return the temporary files of a run that is just writing, or was when it was killed."""
    return [path for path in out.rglob(".*.tmp") if "checkpoints" in path.parts]


def kill_at_random(process: subprocess.Popen[bytes], out: Path, options: Options, moment: random.Random) -> str:
    """Kill a run after a random number of further epochs and a random moment; return what it was doing."""
    before = set(writing(out))  # what the last kill left, until this start removes it
    wanted = epochs_done(out) + 2 * moment.randint(0, options.epochs // (options.kills + 1))
    as_it_writes = moment.random() < 0.25
    while process.poll() is None and epochs_done(out) < wanted:
        time.sleep(0.002)
    if not as_it_writes:
        time.sleep(moment.uniform(0, 0.2))
    while as_it_writes and process.poll() is None and not set(writing(out)) - before:
        pass
    process.send_signal(signal.SIGKILL)
    if process.wait() != -signal.SIGKILL:
        return "ended before"
    return "in a write" if set(writing(out)) - before else f"after {epochs_done(out) // 2} epochs"


def content(out: Path) -> Any:
    """Return what a run ends with, without the seconds it took."""
    (folder,) = (path for path in out.iterdir() if path.is_dir())
    rows = [{**row, "seconds": 0} for row in read_history(folder / "history.csv")]
    summary = read_summary(folder) | {"seconds_per_epoch_and_seed": None}
    masks = [load_masks(path) for path in sorted(folder.glob("masks/*.npz"))]
    left = [path.name for path in folder.rglob("*") if path.suffix in (".ckpt", ".tmp")]
    return rows, summary, masks, left


def one_run(number: int, folder: Path, options: Options) -> tuple[bool, str]:
    """Run number `number` undisturbed and killed; return whether both end alike, and a line about it."""
    moment = random.Random(f"{options.seed} {number}")
    whole, killed = folder / f"whole-{number}", folder / f"killed-{number}"
    for out in (whole, killed):
        out.mkdir()
    if start(whole, number, options).wait() != 0:
        return False, f"the undisturbed run failed: {whole.with_suffix('.txt').read_text()[-2000:]}"
    doing = [kill_at_random(start(killed, number, options), killed, options, moment) for _ in range(options.kills)]
    if start(killed, number, options).wait() != 0:
        return False, f"could not be resumed: {killed.with_suffix('.txt').read_text()[-2000:]}"
    try:
        np.testing.assert_equal(content(killed), content(whole))
    except AssertionError as error:
        return False, f"differs, killed {doing}: {str(error)[:500]}"
    return True, f"the same, killed {json.dumps(doing)}"


def main(options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        # All runs compile the same programs.
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(folder) / "compiled"))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
        same = 0
        results = pool.map(lambda number: one_run(number, Path(folder), options), range(options.runs))
        for number, (good, text) in enumerate(results):
            same += good
            print(f"run {number}: {text}", flush=True)
    print(f"{same} of {options.runs} runs end bit-identical")
    sys.exit(0 if same == options.runs else 1)


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
