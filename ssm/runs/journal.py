"""A run's journal: one JSON object a line, written as it happens, so that a crash leaves all that came before.

`journal.jsonl` is that of process 0, `journal-1.jsonl` that of another one that shares the run's seeds.

`{"event": "epoch", "time": ..., "process": 0, "run": ..., "seed": 3, "epoch": 7, "test_accuracy": ..., ...}` for each
seed and epoch.  Other events are `opened` (how many seeds are missing), `start` (how many seeds, and the epochs that they
have still to go, in all), `saved` (seeds finished), `bad_seed`, `checkpoint`, `halved` (fewer seeds at once, as memory did
not suffice; a new `start` follows), `interrupted`, `error` (any exception) and `end`.  After a resume the epochs since
the last checkpoint come again: of two lines for one seed and epoch the later one counts.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ssm.files import plain

JOURNAL = "journal.jsonl"


class Journal:
    """Appends lines to a folder's journal; if it can't be written, that is logged once and training continues."""

    def __init__(self, folder: Path, log: Callable[[str], None], process: int = 0) -> None:
        self.path = folder / (f"journal-{process}.jsonl" if process else JOURNAL)
        self.log, self.process, self.broken = log, process, False
        # What a crash cut off must not take the next line with it.
        with suppress(OSError), open(self.path, "r+b") as file:
            if file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                file.write(b"\n")

    def __call__(self, event: str, **more: Any) -> None:
        """Append an event with the time in seconds since 1970."""
        line = json.dumps(
            plain({"event": event, "time": time.time(), "process": self.process, **more}), allow_nan=False
        )
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            if not self.broken:
                self.log(f"warning: {self.path} cannot be written ({error.strerror or error}); training continues")
            self.broken = True


def read_journal(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a folder's journals, each in order; a line that a crash cut off is skipped."""
    for path in sorted(folder.glob("journal*.jsonl"), key=lambda path: (path.name != JOURNAL, path.name)):
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    found = json.loads(line)
                except ValueError:
                    continue
                if isinstance(found, dict) and "event" in found:
                    yield found
