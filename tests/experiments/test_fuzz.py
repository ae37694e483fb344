"""The program that damages artefacts: as a user runs it, and that it sees what it looks for."""

import re
import subprocess
import sys

import pytest

from tests.support.programs import ROOT, Place
from tests.support.quick import quick

NET = "__import__('dataclasses').replace(fuzz.load_bytes(fuzz.examples()[0]), {})"  # sound but for something
FAULTS = {
    "{}['a']": "KeyError: 'a'",
    "__import__('os').abort()": "",
    "__import__('time').sleep(60)": "Timeout",
    "bytearray(100 << 20) and None": "104,85",
    NET.format("layers={}"): "its layers do not match its architecture",
    NET.format("layers={'Dense_0': fuzz.Layer(fuzz.np.full((16, 15), 2, 'i1'), 0.5)}"): "not ternary",
    NET.format("about={1: 2}"): "saved again, it is another",
}


def test_every_damaged_file_is_refused_or_a_net(tmp_path):
    done = Place(tmp_path, tmp_path).program("fuzz.py", "--mutations=600", "--seed=1")
    assert done.returncode == 0 and not list(tmp_path.iterdir()), done.stderr
    refused, loaded = map(int, re.findall(r"(\d+) (?:refused|loaded),", done.stdout))
    assert refused + loaded == 600 and refused > 400 and loaded > 30
    assert all(f"  {why}" in done.stdout for why in ("part ", "it holds", "its layers do not match", "the stream"))


@pytest.mark.parametrize(("instead", "said"), quick(FAULTS.items(), 2))
def test_anything_else_ends_the_program_and_leaves_the_file(instead, said, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT}/experiments")
    code = f"import fuzz; fuzz.HANGS = 1; fuzz.load = lambda path, **options: {instead}; fuzz.main(fuzz.Options())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode and said in done.stderr and (tmp_path / "mutated.ssm").exists()
