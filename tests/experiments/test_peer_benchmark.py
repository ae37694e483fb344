"""The PyTorch peer of the benchmark: what it counts and says without PyTorch, and a tiny step where there is one."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PEER = Path(__file__).resolve().parents[2] / "experiments" / "benchmarks" / "peer.py"
WITHOUT_TORCH = """
import runpy, sys
sys.modules["torch"] = None  # as if it were not installed
sys.argv[:] = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(*arguments, torch=True):
    start = [] if torch else ["-c", WITHOUT_TORCH]
    call = [sys.executable, *start, str(PEER), *arguments]
    return subprocess.run(call, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def peer():
    return runpy.run_path(str(PEER))


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is no dependency: the peer runs in an environment of its own")


def test_the_weights_are_those_of_the_paper(peer):
    counts = {model: sum(int(np.prod(shape)) for shape, _ in peer["layers"](model)) for model in peer["CHANNELS"]}
    assert counts == {"fcn": 266_200, "conv2": 4_300_992, "conv4": 2_425_024, "conv6": 2_261_184, "conv8": 5_275_840}


def test_flops_are_two_a_product_three_products_a_layer_but_two_in_the_first(peer):
    # FCN by hand: 784 * 300 twice, 300 * 100 and 100 * 10 three times.
    assert peer["step_flops"]("fcn", 1) == 2 * (2 * 235_200 + 3 * 30_000 + 3 * 1_000)
    # Conv2 by hand: 32 * 32 positions of 27 * 64 and of 576 * 64, then 16,384 * 256, 256 * 256 and 256 * 10.
    first, rest = 1024 * 27 * 64, 1024 * 576 * 64 + 16_384 * 256 + 256 * 256 + 256 * 10
    assert peer["step_flops"]("conv2", 128) == 128 * 2 * (2 * first + 3 * rest)
    assert peer["step_flops"]("conv2", 128) / 1e9 == pytest.approx(33.17, abs=0.005)
    assert 128 * 6 * (first + rest) / 1e9 == pytest.approx(33.6, abs=0.05)


def test_without_torch_one_line_says_what_to_install():
    done = run(torch=False)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.splitlines() == [
        f"peer.py: PyTorch is missing; install it with: {sys.executable} -m pip install torch==2.13.0 numpy"
    ]


@pytest.mark.parametrize("option", ["--steps=0", "--batch=-1", "--threads=0", "--models=conv2,conv3"])
def test_a_bad_option_is_one_message(option):
    done = run(option, torch=False)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and done.stderr.startswith("peer.py: ")


@pytest.mark.parametrize("method", ["signed", "dense"])
def test_a_tiny_step(torch, tmp_path, method):
    out = tmp_path / "peer.json"
    done = run("--models=conv2,fcn", "--batch=2", "--steps=1", "--threads=1", f"--method={method}", f"--out={out}")
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    assert figures["method"] == method and set(figures["models"]) == {"conv2", "fcn"}
    for name, row in figures["models"].items():
        assert any(line.startswith(name) for line in done.stdout.splitlines())
        assert row["median_ms"] > 0 and row["gflop_per_s"] > 0 and np.isfinite(row["last_loss"])


def test_the_mask_is_the_papers_and_straight_through(torch, peer):
    at = np.float32(0.01)
    inside = np.nextafter(at, np.float32(0))
    score = torch.tensor([0.5, float(at), float(inside), 0.0, -float(inside), -float(at), -0.5], requires_grad=True)
    weight = torch.tensor([2.0, -2.0, 2.0, 2.0, 2.0, -2.0, 2.0])
    masked = peer["make_masked"]()(score, weight)
    assert masked.tolist() == [2, -2, 0, 0, 0, 2, -2]
    (gradient,) = torch.autograd.grad(masked.sum(), score)
    assert gradient.tolist() == weight.tolist()


def test_two_updates_are_the_ledgers(torch, peer):
    score, velocity = torch.tensor([1.0, -2.0]), torch.zeros(2)
    expected, a = np.array([1.0, -2.0]), np.zeros(2)
    for gradient in ([0.5, 1.0], [-1.0, 3.0]):
        peer["sgdw"]([score], [velocity], [torch.tensor(gradient)], 0.05, 5e-4)
        expected -= 5e-4 * expected
        a = 0.9 * a - 0.05 * np.array(gradient)
        expected += 0.9 * a - 0.05 * np.array(gradient)
    np.testing.assert_allclose(score.numpy(), expected, rtol=1e-6)
