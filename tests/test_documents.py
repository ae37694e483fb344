"""Documents show what was measured: their tables are those that the programs make of experiments/results."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "experiments" / "results" / "README.md"]
DOCUMENTS += sorted((ROOT / "docs").glob("**/README.md")) + sorted((ROOT / "docs").glob("*.md"))


def run(*arguments):
    own = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, env=own)


def test_embedded_tables_are_up_to_date():
    cogged = [str(path) for path in DOCUMENTS if "[[[cog" in path.read_text(encoding="utf-8")]
    assert len(cogged) == 4
    done = run("-m", "cogapp", "--check", "-P", "-I", "experiments", *cogged)
    assert done.returncode == 0, f"make results brings them up to date\n{done.stdout}{done.stderr}"


def test_the_tables_are_those_of_the_committed_runs():
    done = run("experiments/table.py", "experiments/results")
    assert done.stdout == (ROOT / "docs" / "results" / "tables.md").read_text(encoding="utf-8"), "make results"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    assert not [target for target in targets if not (path.parent / target).exists()]
