"""Signals that ask a program to end: while seeds train, the first lets the running epoch end and be saved."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from ssm.runs.output import lossy

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")  # the last two: schedulers, before a job's time is up
SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))  # Windows lacks some
_ALWAYS = (signal.SIGINT, signal.SIGTERM)  # even where a shell has its background jobs ignore Ctrl-C
SAME_SECONDS = 1.0  # a batch system and a wrapper script often both pass one signal on


class Interrupted(Exception):
    """Training was stopped by a signal, after what it had come to was saved; the exit status is 128 + `number`."""

    def __init__(self, number: int, message: str):
        super().__init__(message)
        self.number = number


class Stopped(KeyboardInterrupt):
    """A signal came while nothing trained; as Ctrl-C's exception, and the exit status is 128 + `number`."""

    def __init__(self, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


@dataclass
class Interrupts:
    """Which of SIGNALS came first; None while none has."""

    caught: int | None = None


def _raise(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


def _taken() -> tuple[int, ...]:
    """Return those of SIGNALS that mean the end: not what nohup has the process ignore, nor what its user handles."""
    return tuple(one for one in SIGNALS if one in _ALWAYS or signal.getsignal(one) in (signal.SIG_DFL, _raise))


@contextmanager
def raising() -> Iterator[None]:
    """Have SIGNALS raise Stopped until the context ends, so that none ends a program without a word; then it is over.

    What comes later, as the interpreter ends, changes no exit status: Ctrl-C and SIGTERM end it at once, the rest are
    ignored.  It does nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = _taken()
    for number in taken:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL if number in _ALWAYS else signal.SIG_IGN)


@contextmanager
def watched(grace: str) -> Iterator[Interrupts]:
    """Take SIGNALS as a wish until the context ends; does nothing outside the main thread.

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
    taken = _taken()
    watcher = threading.Thread(target=_watch, args=(read, taken, found, grace), daemon=True)
    # The handlers do nothing: without one Python would raise KeyboardInterrupt or the process end.
    handlers = {number: signal.signal(number, lambda number, frame: None) for number in taken}
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


def _watch(read: int, taken: tuple[int, ...], found: Interrupts, grace: str) -> None:
    first = 0.0
    while numbers := os.read(read, 64):
        for number in numbers:
            if number not in taken:
                continue
            if found.caught is not None:
                if time.monotonic() - first < SAME_SECONDS:
                    continue
                print("stopped at once; the last checkpoint stands", file=lossy(sys.stderr), flush=True)
                os._exit(128 + number)
            first = time.monotonic()
            found.caught = number
            print(f"{signal.Signals(number).name}: {grace}", file=lossy(sys.stderr), flush=True)
