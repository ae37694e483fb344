"""Which devices seeds are spread over, how they are run there, and what is recorded about them."""

import math
import os
import platform
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

from ssm.data.search import cache_dir
from ssm.errors import UserError
from ssm.training.batches import seed_key
from ssm.training.epoch import initial_variables
from ssm.training.settings import pinned
from ssm.training.task import SeedLoop, Task

DISTRIBUTION = "signed-supermask"
DETERMINISTIC_FLAG = "--xla_gpu_exclude_nondeterministic_ops=true"
AUTOTUNE_FLAG = "--xla_gpu_per_fusion_autotune_cache_dir="
SLOWEST_FLAG = "--xla_gpu_deterministic_ops=true"  # the first and no autotuning, which a user may ask XLA for
FLAGS = ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS", "NVIDIA_TF32_OVERRIDE")
"""Variables of the environment that change what XLA computes; they are read once, and can only be recorded."""


def use_host_devices(count: int | None = None) -> None:
    """Start JAX with one CPU device per core (or `count`); call it before JAX computes anything.

    One epoch program keeps just over one core busy; seeds on a device per core keep all of them busy.
    Raises UserError where JAX can't start the backend that the environment asks for.
    """
    jax.config.update("jax_num_cpu_devices", count or cores())
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:
        asked = os.environ.get("JAX_PLATFORMS", "")
        raise UserError(f"JAX finds no device; JAX_PLATFORMS is {asked!r}, unset it or set it to cpu.") from error


def deterministic() -> None:
    """Have a GPU compute the same bits in every run, at some cost of speed; call it before JAX computes anything.

    Operations whose order changes are excluded, and what XLA finds fastest is kept in the user's cache folder, so that
    a later run on the machine takes the same.  A CPU does so by itself.
    Raises UserError where that folder cannot be made.  Source: XLA's flags xla_gpu_exclude_nondeterministic_ops and
    xla_gpu_per_fusion_autotune_cache_dir.
    """
    flags = _xla_flags()
    if SLOWEST_FLAG in flags:
        return
    if DETERMINISTIC_FLAG not in flags:
        flags.append(DETERMINISTIC_FLAG)
    if not any(flag.startswith(AUTOTUNE_FLAG) for flag in flags):
        flags.append(AUTOTUNE_FLAG + str(_autotune_folder()))
    os.environ["XLA_FLAGS"] = " ".join(flags)


def _xla_flags() -> list[str]:
    return os.environ.get("XLA_FLAGS", "").split()


def _autotune_folder() -> Path:
    folder = cache_dir().absolute() / "autotune"
    if len(str(folder).split()) > 1:
        raise UserError(f"--deterministic: XLA takes no folder with a space, {folder}; set SSM_CACHE_DIR to another.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"--deterministic: {folder} cannot be made: {why}; set SSM_CACHE_DIR to another.") from error
    return folder


def is_deterministic() -> bool:
    """Say whether this process computes the same bits in every run."""
    flags = _xla_flags()
    kept = DETERMINISTIC_FLAG in flags and any(flag.startswith(AUTOTUNE_FLAG) for flag in flags)
    return jax.default_backend() == "cpu" or kept or SLOWEST_FLAG in flags


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> float:
    """Return the bytes that JAX may take on one device, for a CPU those that the machine (or container) has left.

    Infinity where nothing says.
    """
    limit = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    if limit:
        return float(limit)
    found = [math.inf]
    for file, key in (("/proc/meminfo", "MemAvailable:"), ("/sys/fs/cgroup/memory.max", "")):
        try:
            lines = Path(file).read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            continue
        numbers = [line.removeprefix(key).split()[0] for line in lines if line.startswith(key)]
        found += [float(number) * (1024 if key else 1) for number in numbers if number.isdecimal()]
    return min(found)


def seed_loop(task: Task) -> SeedLoop:
    """Return how a device runs a task's seeds: one after another on a CPU (they fit the cache so), else as it says.

    Where it says nothing, nets with 2-D convolutions run one after another, too: each of their kernels keeps a GPU
    busy, and many seeds' filter gradients at once become convolutions with windows as large as the images.  Small
    products don't, and all seeds run at once.  Source: experiments/benchmarks/speed.py on a CPU, docs/gpu.md.
    """
    if jax.default_backend() == "cpu":
        return "map"
    return task.accelerator_loop or ("map" if _convolves(task) else "vmap")


@pinned()
def _convolves(task: Task) -> bool:
    """Say whether a task's net has kernels of more axes than those of dense layers, attention and 1-D convolutions."""
    variables = jax.eval_shape(lambda: initial_variables(task.net(task.numbers), seed_key(0), task.example))
    return any(leaf.ndim > 3 for leaf in jax.tree.leaves(variables["params"]))


def environment(**more: Any) -> dict[str, Any]:
    """Return what a result depends on beside its configuration: versions, devices, flags, commit; `more` is added."""
    devices = jax.devices()
    return {
        "python": platform.python_version(),
        DISTRIBUTION: _version(),
        **{name: metadata.version(name) for name in ("jax", "jaxlib", "flax", "optax", "numpy")},
        "backend": jax.default_backend(),
        "device": devices[0].device_kind,
        "devices": len(devices),
        "deterministic": is_deterministic(),
        "flags": _flags(),
        "processor": _processor(),
        "git_commit": _git_commit(),
        **more,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    names = {key.strip(): value.strip() for key, value in fields.items()}
    widest = next((flag for flag in ("avx512f", "avx2") if flag in names.get("flags", "").split()), "")
    return f"{names.get('model name', platform.processor())}, {cores()} cores {widest}".strip()


def _flags() -> dict[str, str]:
    """Return those of `FLAGS` that are set, but for what `deterministic` says."""
    said = (DETERMINISTIC_FLAG, AUTOTUNE_FLAG, SLOWEST_FLAG)
    words = {name: [word for word in os.environ.get(name, "").split() if not word.startswith(said)] for name in FLAGS}
    return {name: " ".join(value) for name, value in words.items() if value}


def _version() -> str:
    """Return the version of this source: of its own project file, or as it was installed."""
    try:
        project = tomllib.loads((_top() / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        if project["name"] == DISTRIBUTION:
            return str(project["version"])
    except (OSError, ValueError, KeyError):
        pass
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:  # copied to where Python finds it
        return "unknown"


def _top() -> Path:
    """Return the folder that the package is in: of a checkout, its top."""
    return Path(__file__).resolve().parents[2]


def _git_commit() -> str | None:
    """Return the commit of the repository that this source is checked out from; None if it isn't, or lies in another's.

    A virtual environment may be inside any repository: ours has this very file, and has it in its top folder's `ssm`.
    """
    top = _top()

    def git(*arguments: str) -> str:
        ran = subprocess.run(["git", "-C", str(top), *arguments], capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", str(Path(__file__).resolve()))
        if Path(git("rev-parse", "--show-toplevel")).resolve() != top:
            return None
        return git("rev-parse", "HEAD") + (" with changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
