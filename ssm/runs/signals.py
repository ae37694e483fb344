"""Ctrl-C and SIGTERM while seeds train: the first lets the running epoch end, the second ends the program at once."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAME_SECONDS = 1.0  # a batch system and a wrapper script often both pass one signal on


class Interrupted(Exception):
    """Training was stopped by a signal, after what it had come to was saved; the exit status is 128 + `number`."""

    def __init__(self, number: int, message: str):
        super().__init__(message)
        self.number = number


@dataclass
class Interrupts:
    """Which of SIGNALS came first; None while none has."""

    caught: int | None = None


@contextmanager
def watched(grace: str) -> Iterator[Interrupts]:
    """Take Ctrl-C and SIGTERM as a wish until the context ends; does nothing outside the main thread.

    The first prints `grace` and is noted; the second ends the process at once with 128 + its number, which loses
    nothing that was saved, as files are written atomically.  A thread waits for them: Python's own handlers do not run
    before a compiled epoch has returned, possibly minutes later.
    """
    found = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    watcher = threading.Thread(target=_watch, args=(read, found, grace), daemon=True)
    # The handlers do nothing: without one Python would raise KeyboardInterrupt or the process end.
    handlers = {number: signal.signal(number, lambda number, frame: None) for number in SIGNALS}
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    watcher.start()
    try:
        yield found
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(write)  # ends the thread
        watcher.join()
        os.close(read)


def _watch(read: int, found: Interrupts, grace: str) -> None:
    first = 0.0
    while numbers := os.read(read, 64):
        for number in numbers:
            if number not in SIGNALS:
                continue
            if found.caught is not None:
                if time.monotonic() - first < SAME_SECONDS:
                    continue
                print("stopped at once; the last checkpoint stands", file=sys.stderr, flush=True)
                os._exit(128 + number)
            first = time.monotonic()
            found.caught = number
            print(f"{signal.Signals(number).name}: {grace}", file=sys.stderr, flush=True)
