"""Compiled programs are kept between starts, and nothing that happens to them changes a result or ends a run."""

import os
import stat

import pytest

from tests.experiments.test_train_cli import RECIPE, contents, data  # noqa: F401  # the fixture
from tests.support.programs import Place

pytestmark = pytest.mark.slow
HIDDEN = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")


@pytest.fixture
def place(tmp_path, data, monkeypatch):  # noqa: F811
    for name in HIDDEN:  # the suite's own cache
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "here").mkdir()
    return Place(tmp_path / "here", data)


def train(place, out):
    done = place.program("train.py", *RECIPE, "--width=0.1", f"--data-dir={place.data}", "--seeds=1", f"--out={out}")
    assert done.returncode == 0, done.stderr
    (folder,) = (place.here / out).iterdir()
    kept = {name: content for name, content in contents(folder).items() if name.startswith("masks/")}
    assert kept
    return done.stderr.splitlines(), kept


def compiled(place):
    return [path for path in (place.here.parent / "compiled").rglob("*-cache") if path.is_file()]


def test_programs_are_kept_and_said_once_and_damage_is_survived(place):
    said, cold = train(place, "cold")
    folder = place.here.parent / "compiled"
    assert said[0] == f"compiled programs are kept in {folder} (docs/running.md)"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    first = compiled(place)
    assert any(path.name.startswith("jit_device_epoch") for path in first)
    said, warm = train(place, "warm")
    assert warm == cold and sorted(compiled(place)) == sorted(first)
    assert all(line.startswith("seed 0, epoch") for line in said)
    for path in first:
        path.write_bytes(b"not a program")
    _, again = train(place, "again")
    assert again == cold


@pytest.mark.parametrize("what", ["off", "open to others", "a file"])
def test_nothing_is_kept_where_it_should_not_be(place, monkeypatch, what):
    folder = place.here.parent / "compiled"
    if what == "off":
        monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "false")
    elif what == "open to others":
        folder.mkdir()
        os.chmod(folder, 0o777)
    else:
        folder.write_text("")
    said, _ = train(place, "runs")
    assert all(line.startswith("seed 0, epoch") for line in said)
    assert not compiled(place)
