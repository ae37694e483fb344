"""The state of a run by its folder's journal: what is done, what is running, and the time left."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssm.errors import UserError
from ssm.runs.journal import JOURNAL, read_journal
from ssm.runs.lock import in_use

CLOCKS_SECONDS = 2.0  # by which two machines' clocks may differ


@dataclass(frozen=True, kw_only=True)
class Status:
    """Of one run, or one program of a sweep, since its last start.

    state: `runs`, `finished`, `stopped` (by a signal), `failed` (with an error), or `died` (without a message).
    seeds: saved and wanted; those that earlier starts had finished are in neither.
    bad: excluded seeds.
    share: of the epochs that were to go at that start, those done.
    left: seconds until all are done, at the pace since then; None where it is not known.
    quiet: seconds since the journal's last line.
    reason: of a failure or of the last excluded seed, in words.
    """

    folder: Path
    state: str
    seeds: tuple[int, int]
    bad: int
    share: float
    left: float | None
    quiet: float
    reason: str


def status(folder: Path) -> Status:
    """Return the status of a folder with a journal; raises UserError for one without."""
    since: dict[int, list[dict]] = {}
    opened = 0.0
    for event in read_journal(folder):
        process = event.get("process", 0)
        if event["event"] == "opened":
            opened = event["time"]
        if event["event"] == "start":
            since[process] = []
        since.setdefault(process, []).append(event)
    # Another process's journal may be of an earlier job, with more processes.
    events = [
        event
        for process, own in since.items()
        if own[0]["event"] == "start" and (process == 0 or own[0]["time"] >= opened - CLOCKS_SECONDS)
        for event in own
    ]
    starts = [event for event in events if event["event"] == "start"]
    if not starts:
        raise UserError(f"{folder} has no journal of a run")
    since_start = sorted(events, key=lambda event: event["time"])
    kinds = [event["event"] for event in since_start]
    wanted, todo = (sum(int(event[name]) for event in starts) for name in ("seeds", "todo"))
    bad = [event for event in since_start if event["event"] == "bad_seed"]
    done = kinds.count("epoch") + sum(starts[0]["epochs"] - event["epoch"] + 1 for event in bad)
    ended = kinds.count("end") == len(starts)
    running = in_use(folder)
    elapsed = since_start[-1]["time"] - since_start[0]["time"]
    known = {"interrupted": "stopped", "error": "failed"}
    reasons = [event["reason"] for event in since_start if event["event"] in ("bad_seed", "error")]
    return Status(
        folder=folder,
        state="runs" if running else "finished" if ended else known.get(kinds[-1], "died"),
        seeds=(sum(event["seeds"] for event in since_start if event["event"] == "saved"), wanted),
        bad=len(bad),
        share=1.0 if ended else min(done / max(todo, 1), 1.0),
        left=elapsed / done * max(todo - done, 0) if running and done else None,
        quiet=max(time.time() - since_start[-1]["time"], 0.0),
        reason=reasons[-1] if reasons else "",
    )


def journals(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders with a journal among and under the given ones; raises UserError where there is none at all."""
    found = [path.parent for folder in folders for path in sorted(folder.rglob(JOURNAL))]
    if not found:
        raise UserError(f"no run in {', '.join(map(str, folders))}: none has a {JOURNAL}")
    yield from dict.fromkeys(found)
