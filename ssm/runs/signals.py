"""Signals that ask a program to end: while seeds train, the first lets the running epoch end and be saved."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
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


@dataclass
class Interrupts:
    """Which of SIGNALS came first; None while none has."""

    caught: int | None = None


def _nothing(number: int, frame: FrameType | None) -> None:
    """Keep Python from raising KeyboardInterrupt, and the system from ending the process."""


def _taken(ctrl_c: bool = True) -> tuple[int, ...]:
    """Return those of SIGNALS that mean the end: not what nohup has the process ignore, nor what its user handles."""
    ours = (signal.SIG_DFL, _nothing)
    taken = tuple(one for one in SIGNALS if one in _ALWAYS or signal.getsignal(one) in ours)
    return taken if ctrl_c else taken[1:]


@contextmanager
def _watching(taken: tuple[int, ...], act: Callable[[int], None]) -> Iterator[None]:
    """Have a thread act on some signals, until the context ends.

    Python's own handlers do not run before a compiled epoch has returned, possibly minutes later, and an exception of
    theirs may be lost in whatever code it comes out of: JAX's imports and callbacks turn it into other errors.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)

    def watch() -> None:
        while numbers := os.read(read, 64):
            for number in numbers:
                if number in taken:
                    act(number)

    watcher = threading.Thread(target=watch, daemon=True)
    handlers = {number: signal.signal(number, _nothing) for number in taken}
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(write)  # ends the thread
        watcher.join()
        os.close(read)


def _say(text: str) -> None:
    print(text, file=lossy(sys.stderr), flush=True)


@contextmanager
def ending(message: str, *, ctrl_c: bool) -> Iterator[None]:
    """Have SIGNALS end the process at once with a message and 128 + their number; without `ctrl_c` but for Ctrl-C.

    When the context ends, so does the program: what comes as the interpreter ends changes no exit status; Ctrl-C and
    SIGTERM end it at once, the rest are ignored.
    """
    taken = _taken(ctrl_c)

    def act(number: int) -> None:
        _say(f"stopped by {signal.Signals(number).name}; {message}")
        os._exit(128 + number)

    try:
        with _watching(taken, act):
            yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL if number in _ALWAYS else signal.SIG_IGN)


@contextmanager
def watched(grace: str) -> Iterator[Interrupts]:
    """Take SIGNALS as a wish until the context ends; does nothing outside the main thread.

    The first prints `grace` and is noted; the second ends the process at once with 128 + its number, which loses
    nothing that was saved, as files are written atomically.
    """
    found = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    first = 0.0

    def act(number: int) -> None:
        nonlocal first
        if found.caught is None:
            first, found.caught = time.monotonic(), number
            _say(f"{signal.Signals(number).name}: {grace}")
        elif time.monotonic() - first >= SAME_SECONDS:
            _say("stopped at once; the last checkpoint stands")
            os._exit(128 + number)

    with _watching(_taken(), act):
        yield found
