"""The tables as a user has them, in each format."""

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from paper import tables
from tests.support.summaries import put

ROOT = Path(__file__).resolve().parents[2]


def table(*arguments, cwd):
    return subprocess.run(
        [sys.executable, str(ROOT / "experiments" / "table.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=cwd,
        check=False,
    )


def test_the_program_prints_every_table(tmp_path):
    put(tmp_path / "runs" / "mine")
    done = table(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("### ") == len(tables.TABLES)
    assert "| mine |" in done.stdout
    assert "| not run |" in done.stdout
    assert done.stdout.rstrip().endswith(tables.NOTE.splitlines()[-1])


def test_the_program_prints_the_tables_that_are_named(tmp_path):
    put(tmp_path / "runs" / "mine")
    done = table("runs/mine", "--tables=fcn", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("### ") == 1
    assert done.stdout.count("| mine |") == 1
    done = table("runs/mine", "--tables=fcn,conv,runs", "--format", "csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["table"] for row in rows} == {"fcn", "conv", "runs"}
    mine = [row for row in rows if row["run"] == "mine"]
    assert [row["table"] for row in mine] == ["fcn", "runs"]
    assert float(mine[0]["accuracy_mean"]) == pytest.approx(97.58)
    assert len([row for row in rows if row["table"] == "conv" and row["status"] == "not run"]) == 8


def test_the_program_writes_latex(tmp_path):
    put(tmp_path / "runs" / "mine")
    done = table("--format=latex", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    balanced(done.stdout)
    assert done.stdout.count(r"\begin{table}") == len(tables.TABLES)
    assert done.stdout.isascii()


def balanced(text):
    """Check that environments and braces end as they begin, and that rows have as many cells as their table."""
    stack = []
    for what, name in re.findall(r"\\(begin|end)\{([a-z]+)\}", text):
        if what == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert not stack
    bare = re.sub(r"\\[&%$#_{}]", "", text)
    depth = 0
    for character in re.sub(r"(?m)%.*$", "", bare):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert "$" not in bare and "_" not in re.sub(r"\\label\{[^}]*\}", "", bare)
    for columns, body in re.findall(r"\\begin\{tabular\}\{(l+)\}(.*?)\\end\{tabular\}", bare, re.DOTALL):
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(rows) > 1
        assert {line.count("&") for line in rows} == {len(columns) - 1}


def test_the_program_says_what_is_wrong(tmp_path):
    done = table("absent", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "table.py: absent cannot be read: No such file or directory\n"
    folder = put(tmp_path / "runs" / "mine")
    (folder / "summary.json").write_text("{")
    done = table("runs", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "summary.json is damaged" in done.stderr
    (folder / "summary.json").unlink()
    done = table("--tables=fcn,cnn", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("table.py: --tables=cnn is not known; choose from: fcn, conv, ")


def test_a_half_copied_run_among_others_is_named_and_the_rest_goes_on(tmp_path):
    put(tmp_path / "runs" / "good")
    half = put(tmp_path / "runs" / "half")
    (half / "summary.json").write_bytes((half / "summary.json").read_bytes()[:300])
    done = table("runs", "--tables=runs", cwd=tmp_path)
    assert done.returncode == 0 and "| good |" in done.stdout and "| half |" not in done.stdout
    assert done.stderr.startswith("table.py: warning: runs/half is left out: runs/half/summary.json is damaged")
    assert done.stderr.count("\n") == 1


def test_the_help_names_every_table(tmp_path):
    done = table("--help", cwd=tmp_path)
    assert done.returncode == 0
    named = re.sub(r"[^a-z0-9-]+", " ", done.stdout).split()
    assert set(tables.TABLES) <= set(named)
