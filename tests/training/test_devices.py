import json
import os
import re
import subprocess
from dataclasses import replace
from importlib import metadata
from typing import ClassVar

import jax
import numpy as np
import pytest
from flax import linen as nn

from ssm import learners
from ssm.errors import UserError
from ssm.supermask import Supermask
from ssm.training import devices
from ssm.training.devices import available_memory, cores, deterministic, environment, seed_loop
from ssm.training.task import SeedLoop, Task
from tests.support.tasks import make_task


def test_the_cpu_shows_as_many_devices_as_were_asked_for():
    assert len(jax.devices("cpu")) == 8  # tests/conftest.py


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    assert 1 <= cores() <= (os.cpu_count() or 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 5, 6}, raising=False)
    assert cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")  # macOS
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert cores() == 12
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


class Convolved(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(10)(nn.Conv(4, (3, 3))(x.reshape(len(x), 4, 4, 4)).reshape(len(x), -1))


def of(module: nn.Module, loop: SeedLoop | None = None) -> Task:
    task = make_task(Supermask(module, learner=learners.dense()), accelerator_loop=loop)
    return replace(task, example=np.zeros((1, 64), np.float32))


def test_a_cpu_runs_seeds_one_after_another_and_a_gpu_as_the_task_says_or_its_kernels_suggest(monkeypatch):
    plain, convolved = of(nn.Dense(10)), of(Convolved())
    assert seed_loop(of(nn.Dense(10), "vmap")) == "map"
    for backend in ("gpu", "tpu"):
        monkeypatch.setattr(jax, "default_backend", lambda backend=backend: backend)
        assert (seed_loop(plain), seed_loop(convolved)) == ("vmap", "map")
        assert (seed_loop(of(nn.Dense(10), "map")), seed_loop(of(Convolved(), "vmap"))) == ("map", "vmap")


def test_memory_is_the_devices_own_limit_or_what_the_machine_has_left(monkeypatch):
    class Device:
        stats: ClassVar[dict | None] = {"bytes_limit": 5_000_000}

        def memory_stats(self):
            return self.stats

    monkeypatch.setattr(jax, "local_devices", lambda: [Device()])
    assert available_memory() == 5e6
    Device.stats = None  # a CPU

    def read(path, **options):
        return texts[str(path)]

    monkeypatch.setattr(devices.Path, "read_text", read)
    texts = {"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   7 kB\n", "/sys/fs/cgroup/memory.max": "max\n"}
    assert available_memory() == 7 * 1024
    texts["/sys/fs/cgroup/memory.max"] = "5000\n"
    assert available_memory() == 5000

    def nothing(path, **options):
        raise FileNotFoundError(path)

    monkeypatch.setattr(devices.Path, "read_text", nothing)
    assert available_memory() == float("inf")


def test_the_environment_says_what_a_result_depends_on():
    found = environment(precision="bfloat16")
    assert list(found) == [
        *("python", "signed-supermask", "jax", "jaxlib", "flax", "optax", "numpy"),
        *("backend", "device", "devices", "deterministic", "flags", "processor", "git_commit", "precision"),
    ]
    assert found["jax"] == jax.__version__ and found["flax"] == metadata.version("flax")
    assert (found["backend"], found["devices"]) == (jax.default_backend(), len(jax.devices()))
    assert f"{cores()} cores" in found["processor"] or not os.path.exists("/proc/cpuinfo")
    assert found["precision"] == "bfloat16"
    assert json.loads(json.dumps(found)) == found


def test_a_gpu_is_made_deterministic_by_flags_that_are_recorded(monkeypatch, tmp_path):
    monkeypatch.setenv("SSM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XLA_FLAGS", "--xla_one=1")
    assert environment()["deterministic"]  # a CPU
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert not environment()["deterministic"]
    for _ in range(2):
        deterministic()
        flags = os.environ["XLA_FLAGS"].split()
        assert flags == [
            "--xla_one=1",
            "--xla_gpu_exclude_nondeterministic_ops=true",
            f"--xla_gpu_per_fusion_autotune_cache_dir={tmp_path / 'cache' / 'autotune'}",
        ]
    assert (tmp_path / "cache" / "autotune").is_dir()  # XLA doesn't make it
    assert environment()["deterministic"] and environment()["flags"] == {"XLA_FLAGS": "--xla_one=1"}
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_exclude_nondeterministic_ops=true")  # another process finds another best
    assert not environment()["deterministic"]
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")
    deterministic()
    assert environment()["deterministic"] and os.environ["XLA_FLAGS"] == "--xla_gpu_deterministic_ops=true"


@pytest.mark.parametrize(
    ("folder", "message"), [("a b", "no folder with a space"), ("file/in", "cannot be made: Not a")]
)
def test_where_autotuning_cannot_be_kept_there_is_one_message(monkeypatch, tmp_path, folder, message):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SSM_CACHE_DIR", str(tmp_path / folder))
    monkeypatch.setenv("XLA_FLAGS", "")
    with pytest.raises(UserError, match=message):
        deterministic()
    assert os.environ["XLA_FLAGS"] == ""


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def source_in(folder, monkeypatch):
    """Put the file that looks for its commit into a folder's ssm/training."""
    module = folder / "ssm" / "training" / "devices.py"
    module.parent.mkdir(parents=True)
    module.write_text("1")
    monkeypatch.setattr(devices, "__file__", str(module))
    return module


def test_the_commit_is_named_with_what_was_changed_since(monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    module = source_in(tmp_path, monkeypatch)
    assert environment()["git_commit"] is None  # no repository
    git(tmp_path, "init")
    git(tmp_path, "add", str(module))
    git(tmp_path, "commit", "-m", "x")
    commit = environment()["git_commit"]
    assert re.fullmatch("[0-9a-f]{40}", commit)
    (tmp_path / "notes").write_text("files that git does not know change no program")
    assert environment()["git_commit"] == commit
    module.write_text("2")
    assert environment()["git_commit"] == f"{commit} with changes"


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("place", [".venv/lib/python3.11/site-packages", "."])
def test_the_commit_of_another_repository_is_not_ours(monkeypatch, tmp_path, place, tracked):
    module = source_in(tmp_path / place, monkeypatch)
    git(tmp_path, "init")
    if tracked:
        git(tmp_path, "add", "--force", str(module))
    git(tmp_path, "commit", "--allow-empty", "-m", "x")
    assert (environment()["git_commit"] is not None) == (tracked and place == ".")


def test_the_version_is_that_of_this_source_or_as_it_was_installed(monkeypatch, tmp_path):
    module = source_in(tmp_path, monkeypatch)
    assert environment()["signed-supermask"] == metadata.version("signed-supermask")
    project = module.parents[2] / "pyproject.toml"
    project.write_text('[project]\nname = "signed-supermask"\nversion = "7.8.9"\n')
    assert environment()["signed-supermask"] == "7.8.9"
    project.write_text('[project]\nname = "the-users-own"\nversion = "7.8.9"\n')
    assert environment()["signed-supermask"] == metadata.version("signed-supermask")
    monkeypatch.setattr(devices, "DISTRIBUTION", "no-such-package")
    assert environment()["no-such-package"] == "unknown"


def test_flags_of_xla_are_recorded(monkeypatch, tmp_path):
    monkeypatch.setenv("SSM_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "")
    wanted = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    assert environment()["flags"] == wanted
    deterministic()  # which is recorded by itself
    assert environment()["flags"] == wanted


def test_without_git_there_is_no_commit(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment()["git_commit"] is None
