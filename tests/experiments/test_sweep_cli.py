"""Sweeps and their status as a user runs them."""

import csv
import importlib.util
import re
import sys
import time

import numpy as np
import pytest

from ssm.errors import UserError
from ssm.runs.journal import read_journal
from tests.support.programs import ROOT, Place

BASE = ("--model=fcn", "--dataset=mnist5k", "--width=0.1", "--epochs=2", "--seeds=2")
VARIED = ("--vary", "learning_rate=0.02,0.05", "--vary", "weight-decay=1e-3,2e-3")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    return Place(folder, folder)


@pytest.fixture(scope="module")
def swept(place):
    done = place.program("sweep.py", *BASE, *VARIED)
    assert done.returncode == 0, done.stderr
    (folder,) = place.here.glob("runs/sweep-*")
    return done, folder


@pytest.mark.slow
def test_a_sweep_ends_with_a_long_table_its_best_rows_and_a_plot(place, swept):
    done, folder = swept
    assert done.stdout.startswith(f"sweep: 4 points x 2 seeds in 1 programs, {folder.relative_to(place.here)}")
    with open(folder / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["learning_rate"], row["weight_decay"], row["seed"]) for row in rows] == [
        (rate, decay, seed) for rate in ("0.02", "0.05") for decay in ("0.001", "0.002") for seed in "01"
    ]
    assert len({row["run"] for row in rows}) == 4
    table = done.stdout.split("\n\n")[1].splitlines()
    assert table[0].split()[:3] == ["learning_rate", "weight_decay", "seeds"] and len(table) == 5
    best = [float(re.split(r"\s\s+", line)[3].split()[0]) for line in table[1:]]
    assert best == sorted(best, reverse=True)
    assert any(" * " in line for line in table)
    assert (folder / "front.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_what_is_finished_is_skipped(place, swept):
    _, folder = swept
    before = list(read_journal(folder / "program-0"))
    again = place.program("sweep.py", *BASE, *VARIED)
    assert again.returncode == 0 and again.stdout.split("\n\n")[1] == swept[0].stdout.split("\n\n")[1]
    assert list(read_journal(folder / "program-0")) == before


@pytest.mark.slow
def test_the_status_of_a_finished_sweep(place, swept):
    done = place.program("status.py")
    assert done.returncode == 0, done.stderr
    head, line = done.stdout.splitlines()
    assert re.split(r"\s\s+", head) == ["run", "state", "seeds saved", "epochs", "left", "last sign", "reason"]
    assert re.split(r"\s\s+", line)[:4] == [f"{swept[1].name}/program-0", "finished", "8 of 8", "100%"]


@pytest.mark.slow
def test_submitted_programs_are_jobs_of_their_own(tmp_path):
    pytest.importorskip("submitit")
    place = Place(tmp_path, tmp_path)
    command = ("sweep.py", *BASE, "--epochs=1", "--vary", "init=elus,he")
    submitted = place.program(*command, "--submit", "local", "--slurm", "time=5", "--slurm=partition=none")
    assert submitted.returncode == 0, submitted.stderr
    (then,) = re.findall(r"^then: (.*)$", submitted.stdout, re.MULTILINE)
    assert then.endswith("--epochs=1 --vary init=elus,he")
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("runs/fcn-*/summary.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.5)
    (folder,) = tmp_path.glob("runs/sweep-*")
    logs = [path.read_text() for path in (folder / "jobs").glob("*.err")]
    assert len(list(tmp_path.glob("runs/fcn-*/summary.json"))) == 2, logs
    collected = place.program(*command)
    assert collected.returncode == 0 and "2 points x 2 seeds in 2 programs" in collected.stdout, collected.stderr


@pytest.fixture(scope="module")
def program():
    """The program as a module; it finds the options beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "experiments")
        spec = importlib.util.spec_from_file_location("sweep_program", ROOT / "experiments" / "sweep.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "sweep_program", module)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give either --vary"),
        ({"vary": ("learning_rate=0.1",), "point": ("momentum=0.5",)}, "give either --vary"),
        ({"vary": ("seeds=1,2",)}, "--vary seeds: no option that can be varied"),
        ({"vary": ("momentum=0.1", "momentum=0.2")}, "--vary names an option twice"),
        ({"vary": ("momentum=",)}, "--vary momentum= names no value"),
        ({"point": ("momentum",)}, "cannot read 'momentum'"),
        ({"point": ("momentum=0.5", "epochs=3")}, "every --point must name the same options"),
    ],
)
def test_points_that_can_not_be(program, options, message):
    with pytest.raises(UserError, match=re.escape(message)):
        program.points_of(program.Sweep(**options))


def test_values_are_read_as_train_reads_them(program):
    points = program.points_of(program.Sweep(point=("epochs=3,nesterov=False,threshold=quantile:0.5",)))
    assert points == [{"epochs": 3, "nesterov": False, "threshold": "quantile:0.5"}]


def own_sets(folder):
    """Two data sets of one name, of images too few to be anything."""
    for place, seed in (("a", 0), ("b", 1)):
        (folder / place).mkdir()
        x = np.random.default_rng(seed).integers(0, 256, (8, 4, 4), np.uint8)
        y = np.arange(8) % 2
        np.savez(folder / place / "data.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    return "dataset=npz:a/data.npz,npz:b/data.npz"


def test_two_data_sets_of_one_name_are_refused(tmp_path):
    place = Place(tmp_path, tmp_path)
    refused = place.refusal("sweep.py", "--model=fcn", "--width=0.1", "--batch-size=4", "--vary", own_sets(tmp_path))
    assert "a/data.npz and b/data.npz are both called npz:data" in refused
    assert not (tmp_path / "runs").exists()


def test_a_job_has_a_time_in_minutes(tmp_path):
    pytest.importorskip("submitit")
    options = (*BASE, "--vary", "init=elus,he", "--submit=local", "--slurm", "time=01:00:00")
    done = Place(tmp_path, tmp_path).program("sweep.py", *options)
    assert done.returncode == 2 and "--slurm time=01:00:00: give minutes" in done.stderr, done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_bad_sweep_leaves_nothing_behind(tmp_path):
    done = Place(tmp_path, tmp_path).program("sweep.py", *BASE, "--vary", "momentum=0.5,2")
    assert done.returncode == 2 and "--momentum must lie in" in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []
