"""The script for a lent GPU, tried in its tiny mode: a machine's ten minutes are not for finding typing errors."""

import gzip
import importlib
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from ssm.runs.folder import read_summary

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


def add_pictures(folder, names):
    """Write files of CIFAR-10, 64 images to train on and 32 to test: as many as the tiny mode takes."""
    rng = np.random.default_rng(0)
    for name in names:
        count = 32 if name == "test_batch" else 16 if name == "data_batch_1" else 12
        rows = rng.integers(0, 256, (count, 1 + 3 * 32 * 32))
        rows[:, 0] %= 10
        (folder / f"{name}.bin").write_bytes(rows.astype(np.uint8).tobytes())


PICTURES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")


@pytest.fixture
def modules(monkeypatch):
    """The script's modules, which import one another by name."""
    monkeypatch.syspath_prepend(str(ROOT / "experiments" / "benchmarks"))
    names = ("gpu_bench", "gpu_rows", "gpu_nets")
    yield SimpleNamespace(**{name.removeprefix("gpu_"): importlib.import_module(name) for name in names})
    for name in names:
        sys.modules.pop(name)


@pytest.mark.slow
def test_the_tiny_mode_does_every_part(digits_folder):
    add_pictures(digits_folder, PICTURES)
    arguments = (f"--data-dir={digits_folder}", "--out=results", "--tiny")
    done = run(digits_folder, *arguments, "--minutes=30")
    assert done.returncode == 0, done.stderr
    results = digits_folder / "results"
    figures = json.loads((results / "gpu.json").read_text())
    assert {"device", "memory_bytes", "jax", "jax_default_matmul_precision"} <= set(figures["environment"])
    assert set(figures["tflops"]) == {"float32", "TF32", "bfloat16"}
    assert figures["gigabytes_per_s"]["read and write"] > 0
    assert set(figures["ways"]) == {"float32, map", "bfloat16, map"}
    assert all(way["seconds"] > 0 and way["compiling"] > 0 for way in figures["ways"].values())
    assert figures["ways"]["float32, map"]["matmul_precision"] == "highest"

    nets = figures["nets"]
    assert list(nets) == ["conv2, float32, vmap, winograd", "conv2, bfloat16, vmap, winograd"]
    assert all(way["seconds"] > 0 and way["seeds"] == 2 for way in nets.values())
    assert all(way["seconds"] == way["slice_seconds"] * figures["slice"]["factor"] / 2 for way in nets.values())
    ((name, dense),) = figures["dense"].items()
    assert name == "conv2, float32, vmap, winograd"
    assert dense["ratio"] == pytest.approx(dense["masked_step_ms"] / dense["dense_step_ms"])
    assert figures["training"]["conv2"]["runs"] == 2
    assert set(figures["rows"]) == {"signed elus, default", "baseline xavier, paper"}
    assert figures["total"]["seconds"] > 0
    for name, row in (figures["rows"] | figures["training"]).items():
        assert name in done.stdout
        assert row["runs"] == row["trained"] == 2 and row["matmul_precision"] == "highest"
        assert read_summary(results / "tiny-runs" / row["folder"])["runs"] == 2

    # Again, with no time left: what is there needs none.
    again = run(digits_folder, *arguments, "--minutes=0.001")
    assert again.returncode == 0, again.stderr
    later = json.loads((results / "gpu.json").read_text())
    assert all(later[part] == figures[part] for part in ("ways", "nets", "dense"))
    for part in ("rows", "training"):
        assert all(row["trained"] == 0 for row in later[part].values())
        assert all(row["test_accuracy"] == figures[part][name]["test_accuracy"] for name, row in later[part].items())


def test_a_part_that_does_not_fit_is_left_out_as_a_whole(digits_folder):
    add_pictures(digits_folder, PICTURES[1:])  # an incomplete set: to be timed on made images, not trained
    done = run(digits_folder, f"--data-dir={digits_folder}", "--out=results", "--tiny", "--minutes=0.001")
    assert done.returncode == 0, done.stderr
    figures = json.loads((digits_folder / "results" / "gpu.json").read_text())
    parts = ("ways", "nets", "training", "rows")
    assert all("left out" in value for part in parts for value in figures[part].values())
    assert "data_batch_1" in figures["data"]["cifar10"] and "made images" in figures["slice"]["data"]
    assert figures["training"]["conv2"] == "left out: CIFAR-10 is not at hand"
    assert not (digits_folder / "results" / "tiny-runs").exists()


def test_missing_digits_are_said_and_the_rest_goes_on(tmp_path):
    done = run(tmp_path, f"--data-dir={tmp_path}", "--out=results", "--tiny", "--minutes=0.001")
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "results" / "gpu.json").read_text())
    assert figures["data"]["mnist"].startswith("missing: ")
    assert figures["rows"] == {"signed elus, default": "left out: no MNIST"}
    assert "nets" in figures and "total" in figures


@pytest.mark.parametrize("option", ["--minutes=0", "--minutes=nan", "--seeds=0"])
def test_a_bad_option_is_one_message(tmp_path, option):
    done = run(tmp_path, option)
    assert done.returncode == 2 and done.stderr.splitlines() == ["gpu.py: --seeds and --minutes must be above 0."]
    assert not list(tmp_path.iterdir())


def test_a_data_folder_that_is_not_there_is_one_message(tmp_path):
    done = run(tmp_path, "--data-dir=nowhere", "--tiny")
    assert done.returncode == 2 and done.stderr.startswith("gpu.py: --data-dir=nowhere is no folder")


def test_a_folder_that_cannot_be_written_is_one_message(digits_folder):
    (digits_folder / "results").write_text("a file")
    done = run(digits_folder, f"--data-dir={digits_folder}", "--out=results", "--tiny")
    assert done.returncode == 2 and done.stderr.startswith("gpu.py: results cannot be written")


def test_a_part_is_begun_only_if_it_ends_in_time(modules):
    skip = modules.bench.reason_to_skip
    assert skip(10, 10) is None
    assert skip(10, 9.9) == "left out: needs about 10 s, 10 s are left"
    assert skip(10, 15, reserve=5) is None
    assert skip(10, 14, reserve=5) == "left out: needs about 10 s, 14 s are left, 5 s of them for later parts"
    assert skip(math.inf, 1e9) == "left out: nothing timed tells how long it takes, 1000000000 s are left"
    assert skip(-math.inf, -5) is None  # what needs no time is done even after the end


@pytest.mark.parametrize(
    ("left", "share", "most", "count"),
    [
        (230, 1.0, 50, 2),  # 10 once, and 1.1 * 100 for each
        (229, 1.0, 50, 1),
        (230, 1.0, 1, 1),
        (230, 1 / 3, 50, 1),  # one may take more than its share
        (119, 1.0, 50, 0),
        (-5, 1.0, 50, 0),
    ],
)
def test_as_many_seeds_are_trained_as_end_in_time(modules, left, share, most, count):
    fit = modules.bench.seeds_that_fit
    assert fit(left + 1e-6, share=share, pace=1.0, epochs=100, once=10.0, most=most) == count


def make_bench(modules, tmp_path, **options):
    options = {"minutes": 8.0, "seeds": 2, "tiny": False, "started": time.perf_counter()} | options
    return modules.bench.Bench(tmp_path / "out", **options)


def test_a_part_that_fails_is_recorded_and_the_others_go_on(modules, tmp_path, capsys):
    bench = make_bench(modules, tmp_path)

    def fail():
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory\nand more")

    bench.attempt("nets", "too large", fail)
    bench.attempt("nets", "small", lambda: ({"seconds": 1.0}, "fine"))
    found = json.loads((tmp_path / "out" / "gpu.json").read_text())["nets"]
    assert found["too large"].endswith("RESOURCE_EXHAUSTED: out of memory") and found["small"] == {"seconds": 1.0}
    assert bench.failed == 1 and "fine" in capsys.readouterr().out


def test_a_part_has_no_time_once_the_clock_has_run_out(modules, tmp_path):
    bench = make_bench(modules, tmp_path, started=time.perf_counter() - 470)  # 10 of 480 seconds are left
    bench.attempt("nets", "long", lambda: pytest.fail("begun"), needs=20)
    bench.attempt("nets", "reserved", lambda: pytest.fail("begun"), needs=1, reserve=48)
    bench.attempt("nets", "short", lambda: (1.0, ""), needs=1)
    assert [str(value)[:8] for value in bench.figures["nets"].values()] == ["left out", "left out", "1.0"]


@pytest.mark.parametrize("model", ["conv2", "conv4", "conv6", "conv8", "resnet20"])
def test_seeds_are_as_many_as_the_memory_holds(modules, tmp_path, model):
    bench, nets = make_bench(modules, tmp_path), modules.nets
    config = nets.settings(bench, model, 50_000)
    needs = {form: nets.seed_bytes(config, form) for form in ("xla", "winograd", "im2col")}
    assert 1e8 < needs["xla"] < needs["winograd"] < needs["im2col"] < 3e9
    way = nets.Way("float32", "vmap", "xla")
    assert nets.most_seeds(bench, config, way, 50) == 50  # a device that doesn't say
    bench.memory = 3.5 * needs["xla"] / nets.USABLE
    assert nets.most_seeds(bench, config, way, 50) == 3
    assert nets.most_seeds(bench, config, nets.Way("float32", "map", "xla"), 50) == 50
    bench.memory = 1.0
    assert nets.most_seeds(bench, config, way, 50) == 1


def test_the_fastest_way_is_of_the_wanted_precisions_and_time_is_told_from_the_net_s_own_ways(modules, tmp_path):
    bench, nets = make_bench(modules, tmp_path), modules.nets
    assert nets.fastest(bench, "conv2", "float32") is None and nets.expected(bench, "conv2") == 1.1 * nets.WAY_SECONDS
    ways = (("conv2", "float32", 2.0, 10), ("conv2", "TF32", 1.0, 30), ("conv4", "float32", 3.0, 50))
    figures = {
        f"{model}, {precision}": {"seconds": seconds, "took": took, "model": model, "precision": precision}
        | {"loop": "vmap", "form": "xla"}
        for model, precision, seconds, took in ways
    }
    bench.figures["nets"] = {"conv2, failed": "failed: no memory"} | figures
    way, figure = nets.fastest(bench, "conv2", "float32", "bfloat16")
    assert str(way) == "float32, vmap, xla" and figure["seconds"] == 2.0
    assert nets.expected(bench, "conv2") == pytest.approx(1.1 * 20)
    assert nets.expected(bench, "conv8") == pytest.approx(1.1 * 50)
