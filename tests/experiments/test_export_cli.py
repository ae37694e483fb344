"""The programs that make and use artefacts, as a user runs them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ssm
from tests.support.artifact_nets import config
from tests.support.runs import run_config

PROGRAMS = Path(__file__).parents[2] / "experiments"


def program(name, *arguments):
    command = [sys.executable, str(PROGRAMS / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory, digits):
    own = config(epochs=2, batch_size=64, learning_rate=0.02)
    return run_config(own, digits, [0, 1], out=tmp_path_factory.mktemp("runs")).folder


@pytest.fixture(scope="module")
def net(run):
    path = run.parent / "out" / "net.ssm"
    done = program("export.py", run, "--seed", 1, "--out", path)
    assert done.returncode == 0, done.stderr
    assert f"{path.stat().st_size:,}" in done.stdout and "seed 1" in done.stdout
    assert "Checked: frozen weights, and the outputs of 8 test samples" in done.stdout and not done.stderr
    return path


def test_the_exported_net_classifies_image_files(net, digits, tmp_path):
    paths = []
    for number, image in enumerate(digits.test_images[:3, ..., 0]):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(image).save(paths[-1])
    done = program("predict.py", net, *paths, "--top", 1)
    assert done.returncode == 0, done.stderr
    loaded = ssm.load(net)
    wanted = [loaded.class_names[index] for index in loaded.logits(digits.test_images[:3]).argmax(1)]
    assert [line.split()[1] for line in done.stdout.splitlines()[1:]] == wanted


def test_sizes_and_other_forms(run, net, tmp_path):
    done = program("sizes.py", run)
    assert done.returncode == 0, done.stderr
    assert "fcn signed elus" in done.stdout and "| 2 |" in done.stdout
    done = program("export.py", net, "--compact", "--out", tmp_path / "small.onnx")
    assert done.returncode == 0, done.stderr
    loaded = ssm.load(net)
    assert f"{loaded.compact().size:,} of {loaded.weights:,} dense weights remain" in done.stdout
    assert "Dense_0  784 x 300" in done.stdout
    for suffix in ("safetensors", "onnx"):
        done = program("export.py", net, "--out", tmp_path / f"net.{suffix}")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"net.{suffix}").stat().st_size > 1_000_000


def test_a_net_is_exported_as_c(net, tmp_path):
    done = program("export.py", net, "--out", tmp_path / "my-digits.c")
    assert done.returncode == 0, done.stderr
    source = (tmp_path / "my-digits.c").read_text(encoding="ascii")
    assert f"{len(source):,}" in done.stdout
    assert "void my_digits_logits(const uint8_t image[784], float logits[4]" in source
    assert "of 265,600 weights, test accuracy" in source.splitlines()[0]


@pytest.mark.slow
def test_what_is_wrong_is_said_with_status_2(run, net, tmp_path):
    picture = tmp_path / "large.png"
    Image.fromarray(np.zeros((30, 28), np.uint8)).save(picture)
    damaged = tmp_path / "damaged.ssm"
    damaged.write_bytes(net.read_bytes()[:-1])
    for arguments, said in [
        (("export.py", run, "--out", tmp_path / "net.txt"), "must end in"),
        (("export.py", run, "--compact"), "no effect on .ssm"),
        (("export.py", net, "--compact", "--out", tmp_path / "net.c"), "no effect on .c"),
        (("export.py", run, "--seed", 9), "no finished seed 9"),
        (("export.py", tmp_path), "no summary.json"),
        (("predict.py", net), "no image was named"),
        (("predict.py", net, picture), "28 x 30 pixels, this net takes 28 x 28"),
        (("predict.py", net, net), "is not a readable image"),
        (("predict.py", damaged, picture), "damaged"),
        (("sizes.py", tmp_path), "no run with finished seeds"),
    ]:
        done = program(*arguments)
        assert done.returncode == 2 and said in done.stderr, (arguments, done)
        assert not done.stdout
    assert program("predict.py", net, picture, "--resize", "--invert").returncode == 0
