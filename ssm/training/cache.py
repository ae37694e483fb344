"""Compiled programs kept for the next start, in a folder of the user's own."""

import hashlib
import os
from pathlib import Path
from typing import Any

import jax

from ssm.data.search import cache_dir

MOST_BYTES = 1 << 30
LEAST_SECONDS = 0.1  # of compiling; what takes less is compiled again
FOLDER = "compiled"


def keep_compiled() -> Path | None:
    """Have JAX keep what it compiles; return the folder if it has just been made, None otherwise.

    Nothing is done where the user has a cache of his own (JAX_COMPILATION_CACHE_DIR), wants none
    (JAX_ENABLE_COMPILATION_CACHE=false), or where the folder can't be made or written, or others could write to it:
    what is in it is run.  Call it before JAX compiles anything.
    """
    settings: Any = jax.config  # whose attributes type checkers don't see
    if settings.jax_compilation_cache_dir or not settings.jax_enable_compilation_cache:
        return None
    kept = cache_dir() / FOLDER
    folder = kept / _processor()
    try:
        new = not kept.exists()
        for place in (kept, folder):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = place.stat()
            if found.st_uid != os.getuid() or found.st_mode & 0o022 or not os.access(place, os.W_OK | os.X_OK):
                return None
    except OSError:
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", MOST_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    return kept if new else None


def _processor() -> str:
    """Return a name for what a CPU can do: machines that share a home folder may differ in it, JAX's keys do not."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = list(os.uname())
    told = {line for line in lines if line.startswith(("flags", "Features", "model name"))} or set(lines)
    return hashlib.sha256("\n".join(sorted(told)).encode()).hexdigest()[:16]
