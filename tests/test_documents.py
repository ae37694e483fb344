"""Documents show what was measured: their tables are those that the programs make of experiments/results."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ssm
from ssm import data

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


@pytest.mark.parametrize(("form", "suffix"), [("markdown", "md"), ("latex", "tex"), ("csv", "csv")])
def test_the_tables_are_those_of_the_committed_runs(form, suffix):
    done = run("experiments/table.py", "experiments/results", f"--format={form}")
    committed = (ROOT / "docs" / "results" / f"tables.{suffix}").read_text(encoding="utf-8")
    assert done.stdout == committed, f"make results\n{done.stderr}"


@pytest.mark.parametrize(
    ("net", "run", "size"), [("fcn", "fcn-signed-elus-f7f77f1afe", 8534), ("conv2", "conv2-signed", 22921)]
)
def test_committed_nets_are_read_and_classify(net, run, size):
    path = ROOT / "experiments" / "results" / "nets" / f"{net}.ssm"
    loaded = ssm.load(path)
    assert loaded.about["run"].startswith(run) and path.stat().st_size == size
    if net == "fcn":
        digits = data.load("mnist5k")
        hits = loaded.runtime().logits(digits.test_images).argmax(1) == digits.test_labels
        assert hits.mean() > 0.95  # of the full set's training, in which these digits are


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    assert not [target for target in targets if not (path.parent / target).exists()]
