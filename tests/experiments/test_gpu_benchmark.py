"""The script for a lent GPU, tried in its tiny mode: a machine's ten minutes are not for finding typing errors."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ssm.results import read_summary

ROOT = Path(__file__).resolve().parents[2]


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return gzip.compress(header + array.astype(np.uint8).tobytes())


def run(here, *arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "experiments" / "benchmarks" / "gpu.py"), *arguments],
        capture_output=True,
        text=True,
        cwd=here,
        env=os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        timeout=400,
    )


@pytest.fixture
def digits_folder(tmp_path):
    rng = np.random.default_rng(0)
    for part, count in (("train", 96), ("t10k", 32)):
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(idx(rng.integers(0, 256, (count, 28, 28))))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(idx(rng.integers(0, 10, count)))
    return tmp_path


@pytest.mark.slow
def test_the_tiny_mode_does_every_part(digits_folder):
    done = run(digits_folder, f"--data-dir={digits_folder}", "--out=results", "--tiny")
    assert done.returncode == 0, done.stderr
    figures = json.loads((digits_folder / "results" / "gpu.json").read_text())
    assert set(figures["TFLOP/s"]) == {"float32", "TF32 (default precision)", "bfloat16"}
    assert figures["GB/s"]["read and write"] > 0
    assert set(figures["s/epoch/seed"]) == {f"{p}, {w}" for p in ("float32", "bfloat16") for w in ("vmap", "map")}
    assert len(figures["rows"]) == 3 and figures["total"]["seconds"] > 0
    for row in figures["rows"].values():
        assert row["runs"] == 2
        assert read_summary(digits_folder / "results" / "runs" / row["folder"])["runs"] == 2
    assert all(name in done.stdout for name in figures["rows"])


def test_a_bad_option_is_one_message(tmp_path):
    done = run(tmp_path, "--minutes=0")
    assert done.returncode == 2 and done.stderr.splitlines() == ["gpu.py: --seeds and --minutes must be above 0."]
    assert not list(tmp_path.iterdir())
