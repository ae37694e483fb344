"""Compiled programs are kept in the user's own cache folder, for the next start."""

import hashlib
import os
import platform
import stat
from pathlib import Path

import jax

from ssm.data.search import own_cache_dir

MOST_BYTES = 2**30
LEAST_SECONDS = 0.0
FOLDER = "compiled"


def keep_compiled() -> Path | None:
    """Have JAX keep compiled programs, at most 1 GiB, in the user's cache folder; returns the folder if it is new.

    Call it before JAX compiles anything.  Nothing is kept, and nothing is wrong, where there is no such folder, where
    it can't be written, or where others may write it: what it holds is executed.  A folder that JAX has been given
    (JAX_COMPILATION_CACHE_DIR, empty for none) stays; JAX_ENABLE_COMPILATION_CACHE=0 switches it off.
    """
    settings = jax.config.values
    if settings["jax_compilation_cache_dir"] is not None or not settings["jax_enable_compilation_cache"]:
        return None
    place = own_cache_dir()
    if place is None:
        return None
    folder = place / FOLDER / machine()
    try:
        new = not folder.exists()
        for each in (folder.parent, folder):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _own(each):
                return None
    except OSError:
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", MOST_BYTES)
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    return folder if new else None


def machine() -> str:
    """Return a name of the processor's instruction set: machines that share a home folder don't share programs.

    JAX finds a program again by its text, its devices and XLA's flags, not by what instructions the processor has.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    features = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return f"{platform.machine()}-{hashlib.sha256(features.encode()).hexdigest()[:12]}"


def _own(folder: Path) -> bool:
    """Say whether this user, and no other, may write a folder."""
    found = folder.lstat()
    ours = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    shared = os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and ours and not shared and os.access(folder, os.W_OK | os.X_OK)
