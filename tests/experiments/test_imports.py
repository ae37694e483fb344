"""Programs that need no JAX, which takes seconds to import, don't import it."""

import re

import pytest

from tests.support.made_runs import make_run
from tests.support.programs import Place
from tests.support.quick import quick

PROGRAMS = ("train", "sweep", "reproduce", "table", "figures", "sizes", "status", "report")


def modules(tmp_path, name, *arguments):
    """Return what a program imports."""
    done = Place(tmp_path, tmp_path).program(f"{name}.py", *arguments, python=("-X", "importtime"))
    assert done.returncode == 0, done.stderr[-2000:]
    return set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE))


@pytest.mark.parametrize("name", quick(PROGRAMS, 3))
def test_help_needs_no_jax(tmp_path, name):
    found = modules(tmp_path, name, "--help")
    assert "tyro" in found
    assert not found & {"jax", "flax", "optax"}


@pytest.mark.parametrize(("name", "arguments"), [("table", ()), ("figures", ("--out=figures",))])
def test_tables_and_figures_of_runs_need_no_jax(tmp_path, name, arguments):
    run = make_run(tmp_path / "runs")
    found = modules(tmp_path, name, getattr(run, "folder", run), *arguments)
    assert "ssm.runs.program" in found
    assert not found & {"jax", "flax", "optax"}
