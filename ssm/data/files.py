"""Files moved into place only when they are complete."""

import os
import pathlib


def publish(source: pathlib.Path, target: pathlib.Path) -> None:
    """Move every file of the folder `source` into `target`, on the same file system, each atomically.

    The contents are synced to disk before the names, so that a crash leaves complete files or none.
    """
    paths = sorted(source.iterdir())
    for path in paths:
        _sync(path)
    for path in paths:
        os.replace(path, target / path.name)
    if os.name == "posix":  # elsewhere a folder can't be opened
        _sync(target)


def _sync(path: pathlib.Path) -> None:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
