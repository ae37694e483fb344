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
        # What is compiled here runs for milliseconds: optimising it would take most of the test's time.
        env=os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
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
    arguments = (f"--data-dir={digits_folder}", "--out=results", "--tiny")
    done = run(digits_folder, *arguments)
    assert done.returncode == 0, done.stderr
    results = digits_folder / "results"
    figures = json.loads((results / "gpu.json").read_text())
    assert {"device", "memory_bytes", "jax", "jax_default_matmul_precision"} <= set(figures["environment"])
    assert set(figures["tflops"]) == {"float32", "TF32", "bfloat16"}
    assert figures["gigabytes_per_s"]["read and write"] > 0
    assert set(figures["ways"]) == {"float32, map", "bfloat16, map", "float32, vmap"}
    assert all(way["seconds"] > 0 and way["compiling"] > 0 for way in figures["ways"].values())
    assert figures["ways"]["float32, map"]["matmul_precision"] == "highest"
    assert set(figures["rows"]) == {"signed elus, default", "baseline xavier, paper"}
    assert figures["total"]["seconds"] > 0
    for name, row in figures["rows"].items():
        assert name in done.stdout
        assert row["runs"] == row["trained"] == 2 and row["matmul_precision"] == "highest"
        assert read_summary(results / "tiny-runs" / row["folder"])["runs"] == 2
    # Again, with no time left: what is there needs none.
    again = run(digits_folder, *arguments, "--minutes=0.001")
    assert again.returncode == 0, again.stderr
    rows = json.loads((results / "gpu.json").read_text())["rows"]
    assert [row["trained"] for row in rows.values()] == [0, 0]
    assert all(row["test_accuracy"] == figures["rows"][name]["test_accuracy"] for name, row in rows.items())


def test_a_row_that_does_not_fit_is_left_out_as_a_whole(digits_folder):
    done = run(digits_folder, f"--data-dir={digits_folder}", "--out=results", "--tiny", "--minutes=0.001")
    assert done.returncode == 0, done.stderr
    figures = json.loads((digits_folder / "results" / "gpu.json").read_text())
    assert all("left out" in value for part in ("ways", "rows") for value in figures[part].values())
    assert not (digits_folder / "results" / "tiny-runs").exists()


@pytest.mark.parametrize("option", ["--minutes=0", "--minutes=nan", "--seeds=0"])
def test_a_bad_option_is_one_message(tmp_path, option):
    done = run(tmp_path, option)
    assert done.returncode == 2 and done.stderr.splitlines() == ["gpu.py: --seeds and --minutes must be above 0."]
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_one_message(digits_folder):
    (digits_folder / "results").write_text("a file")
    done = run(digits_folder, f"--data-dir={digits_folder}", "--out=results", "--tiny")
    assert done.returncode == 2 and done.stderr.startswith("gpu.py: results cannot be written")
