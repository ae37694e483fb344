"""Compiled programs are kept in a folder of the user's own, or nowhere, and change no result."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from ssm.training import cache
from ssm.training.cache import keep_compiled, machine

SETTINGS = [
    "jax_compilation_cache_dir",
    "jax_compilation_cache_max_size",
    "jax_enable_compilation_cache",
    "jax_persistent_cache_min_compile_time_secs",
]


@pytest.fixture
def no_cache(monkeypatch, tmp_path):
    """JAX without a cache, as it is for a user, whose cache folder is `tmp_path`; what was set is set again."""
    before = {name: jax.config.values[name] for name in SETTINGS}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("SSM_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.delenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", raising=False)
    yield tmp_path / "own" / "compiled"
    for name, value in before.items():
        jax.config.update(name, value)


def test_programs_are_kept_in_the_users_cache_folder_which_is_bounded_and_said_once(no_cache):
    assert keep_compiled() == no_cache / machine()
    assert jax.config.values["jax_compilation_cache_dir"] == str(no_cache / machine())
    assert jax.config.values["jax_compilation_cache_max_size"] == 1_073_741_824
    assert (no_cache / machine()).stat().st_mode & 0o777 == 0o700
    jax.config.update("jax_compilation_cache_dir", None)  # the next start
    assert keep_compiled() is None
    assert jax.config.values["jax_compilation_cache_dir"] == str(no_cache / machine())


@pytest.mark.parametrize("given", ["", "elsewhere"])
def test_a_folder_that_jax_was_given_stays(no_cache, given):
    jax.config.update("jax_compilation_cache_dir", given)
    assert keep_compiled() is None
    assert jax.config.values["jax_compilation_cache_dir"] == given
    assert not no_cache.exists()


def test_it_can_be_switched_off(no_cache):
    jax.config.update("jax_enable_compilation_cache", False)
    assert keep_compiled() is None
    assert jax.config.values["jax_compilation_cache_dir"] is None
    assert not no_cache.exists()


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_may_write_is_not_used(no_cache, mode):
    no_cache.mkdir(parents=True)
    no_cache.chmod(mode)
    assert keep_compiled() is None
    assert jax.config.values["jax_compilation_cache_dir"] is None


def test_another_users_folder_is_not_used(no_cache, monkeypatch):
    no_cache.mkdir(parents=True, mode=0o700)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert keep_compiled() is None
    assert jax.config.values["jax_compilation_cache_dir"] is None


def test_a_link_is_not_followed(no_cache, tmp_path):
    (tmp_path / "other").mkdir(mode=0o700)
    no_cache.parent.mkdir()
    no_cache.symlink_to(tmp_path / "other")
    assert keep_compiled() is None


def test_where_no_folder_can_be_made_nothing_is_kept(no_cache, monkeypatch):
    no_cache.parent.write_text("a file")
    assert keep_compiled() is None
    monkeypatch.setattr(cache, "own_cache_dir", lambda: None)  # a user without a home folder
    assert keep_compiled() is None
    assert jax.config.values["jax_compilation_cache_dir"] is None


def test_machines_that_share_a_home_folder_do_not_share_programs(monkeypatch):
    def named(features):
        monkeypatch.setattr(Path, "read_text", lambda path, **options: f"model name : x\nflags : {features}\n")
        return machine()

    assert named("fma avx2") == named("fma avx2") != named("fma avx2 avx512f")


def started(tmp_path, out, *options, **environment):
    """Train as a user does, in a process without the tests' own cache."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    own |= {"SSM_CACHE_DIR": str(tmp_path / "cache"), "JAX_PLATFORMS": "cpu", **environment}
    program = Path(__file__).parents[2] / "experiments" / "train.py"
    run = [sys.executable, str(program), "--dataset=mnist5k", "--width=0.1", "--seeds=1", "--epochs=1"]
    found = subprocess.run([*run, f"--out={out}", *options], env=own, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found


def result(out):
    (masks,) = out.glob("*/masks/*")
    (history,) = out.glob("*/history.csv")
    lines = [line.split(",") for line in history.read_text().splitlines()]
    kept = [number for number, name in enumerate(lines[0]) if "seconds" not in name]
    return masks.read_bytes(), [[line[number] for number in kept] for line in lines]


@pytest.mark.slow
def test_a_run_is_the_same_without_with_new_with_kept_and_with_damaged_programs(tmp_path):
    off = started(tmp_path, tmp_path / "off", JAX_ENABLE_COMPILATION_CACHE="0")
    assert not (tmp_path / "cache").exists()
    first, second = (started(tmp_path, tmp_path / name) for name in ("first", "second"))
    said = "compiled programs are kept in"
    assert [said in each.stdout for each in (off, first, second)] == [False, True, False]
    entries = sorted((tmp_path / "cache").glob("compiled/*/*-cache"))
    assert len(entries) > 4
    for number, entry in enumerate(entries):
        entry.write_bytes(entry.read_bytes()[: [0, 30][number % 2]])
    started(tmp_path, tmp_path / "damaged")
    assert len({str(result(tmp_path / name)) for name in ("off", "first", "second", "damaged")}) == 1
