"""The state of a run by its folder's journal: what is done, what is running, and the time left."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Return the status of a folder with a journal; raises UserError for one without, or a damaged one."""
    try:
        events = _since_start(folder)
        found = _status(folder, events) if events else None
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UserError(f"{folder / JOURNAL} is damaged: not the journal of a run ({error!r})") from error
    except OSError as error:
        raise UserError(f"{error.filename or folder} cannot be read: {error.strerror or error}") from error
    if found is None:
        raise UserError(f"{folder} has no journal of a run")
    return found


def _since_start(folder: Path) -> list[dict[str, Any]]:
    """Return the events since the last start, by time; nothing but `opened` and an error where it ended before."""
    since: dict[int, list[dict[str, Any]]] = {}
    opened = 0.0
    for event in read_journal(folder):
        process = event.get("process", 0)
        if event["event"] == "opened":
            opened = event["time"]
        if event["event"] in ("opened", "start"):
            since[process] = []
        since.setdefault(process, []).append(event)
    # Another process's journal may be of an earlier job, with more processes.
    return sorted(
        (
            event
            for process, own in since.items()
            if own[0]["event"] in ("opened", "start") and (process == 0 or own[0]["time"] >= opened - CLOCKS_SECONDS)
            for event in own
        ),
        key=lambda event: event["time"],
    )


def _status(folder: Path, events: Sequence[dict[str, Any]]) -> Status:
    kinds = [event["event"] for event in events]
    # `opened` counts the seeds that a `start` counts again, once the nets are compiled.
    starts = [event for event in events if event["event"] == "start"]
    wanted = sum(int(event.get("seeds", 0)) for event in starts or events if event["event"] in ("opened", "start"))
    todo = sum(int(event["todo"]) for event in starts)
    bad = [event for event in events if event["event"] == "bad_seed"]
    done = kinds.count("epoch") + sum(starts[0]["epochs"] - event["epoch"] + 1 for event in bad)
    ended = kinds.count("end") == len(starts) > 0
    running = in_use(folder)
    elapsed = events[-1]["time"] - events[0]["time"]
    known = {"interrupted": "stopped", "error": "failed"}
    reasons = [event["reason"] for event in events if event["event"] in ("bad_seed", "error")]
    return Status(
        folder=folder,
        state="runs" if running else "finished" if ended else known.get(kinds[-1], "died"),
        seeds=(sum(event["seeds"] for event in events if event["event"] == "saved"), wanted),
        bad=len(bad),
        share=1.0 if ended else min(done / max(todo, 1), 1.0),
        left=elapsed / done * max(todo - done, 0) if running and done else None,
        quiet=max(time.time() - events[-1]["time"], 0.0),
        reason=reasons[-1] if reasons else "",
    )


def journals(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders with a journal among and under the given ones; raises UserError where there is none at all."""
    found = [path.parent for folder in folders for path in sorted(folder.rglob(JOURNAL))]
    if not found:
        raise UserError(f"no run in {', '.join(map(str, folders))}: none has a {JOURNAL}")
    yield from dict.fromkeys(found)
