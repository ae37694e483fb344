"""One program at a time in a folder, by a lock of the operating system that ends with the program that holds it."""

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ssm.errors import UserError

LOCK, HOLDER = ".lock", ".holder.json"
LOOK_SECONDS = 1.0  # who looks whether a folder is in use holds it for a moment


@contextmanager
def held(folder: Path) -> Iterator[Path]:
    """Hold a folder, made if need be; what a killed program held is free again, and its files need no care.

    Raises UserError naming the process that holds it, if another one does, or if the folder can't be written.
    """
    lock = FileLock(folder / LOCK)
    about = {"pid": os.getpid(), "host": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=LOOK_SECONDS)
        (folder / HOLDER).write_text(json.dumps(about), encoding="utf-8")
    except Timeout:
        found = holder(folder) or {}
        who = f"process {found['pid']} on {found['host']}, since {found['since']}" if found else "another program"
        raise UserError(f"{folder} is in use by {who}; wait for its end, or choose another --out") from None
    except NotImplementedError:  # a network file system without locks: one program at a time is the user's care
        yield folder
        return
    except OSError as error:
        lock.release()
        raise UserError(f"{folder} cannot be written: {error.strerror or error}; choose another --out") from error
    try:
        yield folder
    finally:
        with suppress(OSError):
            (folder / HOLDER).unlink(missing_ok=True)
        lock.release()


def in_use(folder: Path) -> bool:
    """Say whether a program holds a folder now."""
    if not (folder / LOCK).exists():
        return False
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except (OSError, NotImplementedError):
        return (folder / HOLDER).exists()
    lock.release()
    return False


def holder(folder: Path) -> dict[str, Any] | None:
    """Return the process, the host and the time that a folder's last holder noted, if it can be read."""
    try:
        found = json.loads((folder / HOLDER).read_bytes())
        return {name: found[name] for name in ("pid", "host", "since")}
    except (OSError, ValueError, KeyError, TypeError):
        return None
