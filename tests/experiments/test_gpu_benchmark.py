"""The program for a lent GPU, tried in its tiny mode: a card's nine minutes are not for finding typing errors."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.programs import ROOT


def run(here, *arguments):
    """Run the program and return what it printed, and its results by name."""
    done = subprocess.run(
        [sys.executable, ROOT / "experiments" / "benchmarks" / "gpu.py", "--tiny", "--out=out", *arguments],
        capture_output=True,
        text=True,
        cwd=here,
        # What is compiled here runs for milliseconds: optimising it would take most of the test's time.
        env=os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
        timeout=500,
    )
    file = here / "out" / "gpu.jsonl"
    return done, {
        line["name"]: line for line in map(json.loads, file.read_text().splitlines())
    } if file.is_file() else {}


@pytest.mark.slow
def test_the_tiny_mode_does_every_item_and_goes_on_after_a_failure(tmp_path):
    done, lines = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in lines)
    assert lines["machine"]["backend"] == "cpu" and lines["fcn, a whole row"]["test_accuracy"] > 0
    assert all(lines[f"256 cubed, {kind}"]["TFLOP/s"] > 0 for kind in ("float32", "bfloat16"))
    # A CPU has no TF32: what fails is said, and what comes after it is there.
    failed = {name for name, line in lines.items() if "failed" in line}
    products = {f"{size}, {kind}" for size in ("256 cubed", "2 x 128 x 784 x 300") for kind in ("X3", "TF32")}
    assert failed == products | {"fcn tf32x3 vmap"}
    assert "tf32" in lines["fcn tf32x3 vmap"]["failed"].lower()
    assert sum(name.startswith("4 x 4, 4 to 4, ") and line["ms per seed"] > 0 for name, line in lines.items()) == 12
    assert (lines["tests"]["status"], lines["tests"]["last"][:23]) == (0, "1 skipped, 2 deselected")
    nets = {"fcn float32 vmap", "fcn bfloat16 vmap", "conv4 bfloat16 vmap", "conv4 bfloat16 map fusion"}
    nets |= {"resnet20 float32 map"}
    assert {name for name, line in lines.items() if "estimated GB" in line} == nets
    for name in nets:
        assert 0 < lines[name]["compiled GB"] < lines[name]["taken GB"] and lines[name]["compiling"] > 0
        minutes = lines[name]["s per seed and epoch"] * 2 * 50 / 60
        assert f"| {name} | {lines[name]['s per seed and epoch']:.4g} | {minutes:.4g} |" in done.stdout


def test_every_item_has_an_end_and_a_line(tmp_path):
    done, lines = run(tmp_path, "--minutes=0.0001")
    assert done.returncode == 0 and len(lines) > 9, done.stderr
    assert all(line.get("failed") == "stopped after 0 s" for name, line in lines.items() if name != "gpu.py")


def test_what_cannot_be_run_is_one_message(tmp_path):
    assert run(tmp_path, "--item=nothing")[0].stderr.startswith(
        "gpu.py: --item=nothing is not known; choose from: mach"
    )
    (tmp_path / "out").write_text("a file")
    assert run(tmp_path)[0].stderr.startswith("gpu.py: out cannot be written")
