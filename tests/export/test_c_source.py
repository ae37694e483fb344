"""Nets as C: compiled where there is a compiler, and compared with the Flax nets."""

import ctypes
import dataclasses
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ssm
from ssm import data
from ssm.errors import UserError
from ssm.export import Layer, c_source
from ssm.export.c_source import _float, _quoted, to_c
from ssm.models.graph import Architecture
from tests.support.artifact_nets import in_kinds, made_up

NETS = Path(__file__).parents[2] / "experiments" / "results" / "nets"
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror")
GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(not GCC, reason="there is no gcc on this machine")


def build(source, folder, *options, compiler="gcc"):
    """Compile a file's text, and return the path of what that made."""
    (folder / "net.c").write_text(source, encoding="ascii")
    command = [compiler, *STRICT, *options, "net.c", "-o", "net", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    assert not done.stderr
    return folder / "net"


def c_logits(source, folder, images, *, function="net_logits"):
    """Return the logits of images by the compiled file; its memory begins as NaN."""
    function = getattr(ctypes.CDLL(str(build(source, folder, "-O2", "-shared", "-fPIC"))), function)
    function.restype = None
    classes, size = (int(re.search(rf"#define {name} (\d+)", source)[1]) for name in ("CLASSES", "WORK"))
    found = np.full((len(images), classes), np.nan, np.float32)
    work = np.full(size + 8, np.nan, np.float32)
    for image, logits in zip(np.ascontiguousarray(images), found, strict=True):
        function(*(ctypes.c_void_p(array.ctypes.data) for array in (image, logits, work)))
    assert np.isnan(work[size:]).all()
    return found


def pgm(path, image):
    kind = {1: b"P5", 3: b"P6"}[image.shape[-1]]
    path.write_bytes(b"%s\n# a comment 1 2\n%d %d\n255\n" % (kind, image.shape[1], image.shape[0]) + image.tobytes())
    return path


@needs_gcc
def test_the_fcn_agrees_with_flax_on_a_thousand_real_digits(tmp_path):
    net = ssm.load(NETS / "fcn.ssm")
    images = data.load("mnist5k").test_images[:1000]
    wanted = net.logits(images)
    found = c_logits(to_c(net), tmp_path, images)
    assert len(found) == 1000
    np.testing.assert_allclose(found, wanted, atol=2e-6 * np.abs(wanted).max())
    assert (found.argmax(1) == wanted.argmax(1)).all()


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize("name", ["conv2", "conv4"])
def test_conv_nets_agree_with_flax_on_a_thousand_real_pictures(tmp_path, name):
    folder = os.environ.get("SSM_TEST_DATA")
    if not folder:
        pytest.skip("SSM_TEST_DATA names no folder with the real cifar10")
    net = ssm.load(NETS / f"{name}.ssm")
    images = data.load("cifar10", data_dir=Path(folder)).test_images[:1000]
    wanted = net.logits(images)
    found = c_logits(to_c(net), tmp_path, images)
    np.testing.assert_allclose(found, wanted, atol=5e-6 * np.abs(wanted).max())


@needs_gcc
@pytest.mark.parametrize(
    ("model", "inputs", "width", "density"),
    [
        ("fcn", (28, 28, 1), 1, 0.03),
        ("fcn", (5, 3, 3), 0.1, 0.5),
        ("fcn", (3, 4, 2), 0.02, 1e-9),
        ("fcn", (257, 256, 1), 0.02, 0.01),  # a position takes four bytes
        ("conv2", (12, 10, 3), 0.25, 0.3),
        ("conv2", (2, 3, 1), 0.5, 0.02),
        ("conv4", (9, 7, 3), 0.2, 0.2),
        ("conv6", (8, 8, 2), 0.1, 1.0),
        ("conv8", (16, 16, 3), 0.1, 0.1),
    ],
)
def test_any_shape_agrees_with_the_runtime(tmp_path, model, inputs, width, density):
    net = made_up(Architecture(model=model, inputs=inputs, classes=7, width=width), density=density)
    images = np.random.default_rng(1).integers(0, 256, (3, *inputs), np.uint8)
    images[1] = 77  # a constant image: its deviation is 0
    wanted = net.full_runtime().logits(images)
    found = c_logits(to_c(net), tmp_path, images)
    np.testing.assert_allclose(found, wanted, atol=5e-6 * max(np.abs(wanted).max(), 1e-6))


@needs_gcc
@pytest.mark.parametrize(
    ("model", "inputs", "width"), [("fcn", (28, 28, 1), 0.2), ("conv2", (12, 10, 3), 0.25), ("conv4", (9, 7, 3), 0.2)]
)
def test_a_constant_for_each_sign_agrees_with_the_runtime(tmp_path, model, inputs, width):
    net = made_up(Architecture(model=model, inputs=inputs, classes=7, width=width), density=0.2)
    one = next(iter(net.layers))  # stays as it is: both kinds of functions are in one file
    layers = {
        name: layer if name == one else layer._replace(constant=(layer.constant, layer.constant / 4))
        for name, layer in net.layers.items()
    }
    net = dataclasses.replace(net, layers=layers)
    images = np.random.default_rng(1).integers(0, 256, (3, *inputs), np.uint8)
    source = to_c(net)
    assert "float ratio" in source and not re.search("TWO|RATIO|RESCALED|INDEX", source.split("*/", 1)[1])
    wanted = net.full_runtime().logits(images)
    np.testing.assert_allclose(c_logits(source, tmp_path, images), wanted, atol=5e-6 * np.abs(wanted).max())


@needs_gcc
def test_signed_bytes_are_the_same_image(tmp_path):
    net = ssm.load(NETS / "fcn.ssm")
    images = data.load("mnist5k").test_images[:20]
    wanted = c_logits(to_c(net), tmp_path, images)
    signed = (images.astype(np.int16) - 128).astype(np.int8)
    (tmp_path / "signed").mkdir()
    found = c_logits(to_c(net), tmp_path / "signed", signed, function="net_logits_int8")
    np.testing.assert_array_equal(found, wanted)


@needs_gcc
@pytest.mark.parametrize("model", ["fcn", "conv2"])
def test_the_program_is_clean_under_the_sanitizers(tmp_path, model):
    inputs = (28, 28, 1) if model == "fcn" else (7, 9, 3)
    net = made_up(Architecture(model=model, inputs=inputs, classes=10, width=0.3))
    checks = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DDIGITS_MAIN")
    program = build(to_c(net, name="digits"), tmp_path, *checks)
    image = np.random.default_rng(2).integers(0, 256, inputs, np.uint8)
    done = subprocess.run([program, pgm(tmp_path / "a.pgm", image)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    logits = net.runtime().logits(image[None])[0]
    assert [name for name, _ in lines] == [net.class_names[number] for number in np.argsort(-logits)]
    np.testing.assert_allclose([float(value) for _, value in lines], -np.sort(-logits), rtol=1e-4, atol=1e-4)
    with (tmp_path / "a.pgm").open("rb") as file:
        assert subprocess.run([program], stdin=file, capture_output=True, text=True).stdout == done.stdout


@needs_gcc
def test_the_program_says_what_is_wrong_with_a_file(tmp_path):
    program = build(to_c(ssm.load(NETS / "fcn.ssm")), tmp_path, "-fsanitize=address,undefined", "-DNET_MAIN")
    header, pixels = b"P5 28 28 255\n", bytes(784)
    for contents, said in [
        (b"", "is another kind of file"),
        (b"P6 28 28 255\n" + pixels * 3, "is another kind of file"),
        (b"P5 27 28 255\n" + pixels, "has another size"),
        (b"P5 -28 28 255\n" + pixels, "has another size"),
        (b"P5 28 28x255\n" + pixels, "has another size"),
        (b"P5 28 28 255x" + pixels, "has another largest value"),
        (b"P5 28" + b"0" * 99, "has another size"),
        (b"P5 #", "has another size"),
        (b"P5 28 28 65535\n" + pixels * 2, "has another largest value"),
        (header + pixels[1:], "ends too early"),
    ]:
        path = tmp_path / "a.pgm"
        path.write_bytes(contents)
        done = subprocess.run([program, path], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, ""), contents
        assert done.stderr == f"{path}: {said}; expected a binary P5 of 28 x 28 pixels from 0 to 255\n"
    path.write_bytes(header + pixels)
    wanted = subprocess.run([program, path], capture_output=True, text=True)
    assert wanted.returncode == 0 and len(wanted.stdout.splitlines()) == 10
    for legal in (b"P5 #\r28#c\n\t28 255#1 2 3\n", b"P5\n# 1\n# 2\n28\r\n28\n255\t", b"P5 000000028 28 255 "):
        path.write_bytes(legal + pixels)
        assert subprocess.run([program, path], capture_output=True, text=True).stdout == wanted.stdout, legal
    assert subprocess.run([program, tmp_path / "none"], capture_output=True, text=True).stderr.count("cannot be read")
    assert subprocess.run([program, path, path], capture_output=True, text=True).returncode == 2


def test_no_weight_is_multiplied_and_nothing_is_allocated():
    source = to_c(ssm.load(NETS / "conv2.ssm"))
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    assert re.findall(r"#include .*", code) == ["#include <math.h>", "#include <stdint.h>", "#include <stdio.h>"]
    assert not re.search(r"\b(malloc|calloc|realloc|free)\b", code)
    # The tables hold positions alone, and a layer's function has one product of floats: by the layer's constant.
    tables = re.findall(r"static const \w+_t \w+\[\] = \{([^}]*)\}", code)
    assert len(tables) == 2 * 5 and not any(re.search(r"[^\d\s,]", table) for table in tables)
    bodies = re.findall(r"static void ((?:conv|dense)_.*?)\n}", code, flags=re.DOTALL)
    assert len(bodies) == len({re.match(r"\w+", body)[0] for body in bodies}) == 4
    for body in bodies:
        sums = [line for line in body.splitlines() if re.search(r"[+-]= \(?[abcdx]\b", line)]
        assert len(sums) >= 4 and not any("*" in line for line in sums)
        assert body.count("constant *") == 1


def test_a_position_takes_one_byte_where_that_is_enough():
    source = to_c(ssm.load(NETS / "fcn.ssm"))
    assert "static const uint16_t dense_0_index[]" in source and "static const uint8_t dense_1_index[]" in source
    assert source.isascii() and max(map(len, source.splitlines())) <= 140


def test_nets_that_are_no_sums_are_refused():
    block = Architecture(model="resnet20", inputs=(12, 12, 3), classes=10, width=0.25, batch_norm="affine")
    with pytest.raises(UserError, match=r"not of resnet20; \.onnx takes every net"):
        to_c(made_up(block))
    net = made_up(Architecture(model="fcn", inputs=(4, 4, 1), classes=3))
    drawn = {name: Layer(layer.ternary, None) for name, layer in net.layers.items()}
    with pytest.raises(UserError, match="Dense_0, Dense_1, Dense_2 do not share one magnitude"):
        to_c(dataclasses.replace(net, layers=drawn))
    own = net.layers | {"Dense_1": in_kinds(net).layers["Dense_1"]}
    count = np.count_nonzero(net.layers["Dense_1"].ternary)
    with pytest.raises(UserError, match=f"Dense_1 holds {count:,} values of their own; a C file is for ternary layers"):
        to_c(dataclasses.replace(net, layers=own))


@needs_gcc
def test_names_of_all_kinds_are_valid_c(tmp_path):
    net = made_up(Architecture(model="fcn", inputs=(4, 4, 1), classes=3, width=0.05))
    names = ('a "quoted" \\ one', "two ??= */ 1", "drei ä\n")
    net = dataclasses.replace(net, class_names=names, about={"run": "*/ int x; /* ??/", "seed": 0})
    for given, used in [
        ("7 segments", "net_7_segments"),
        ("my-net", "my_net"),
        ("", "net"),
        ("__x", "x"),
        ("ä", "net"),
    ]:
        source = to_c(net, name=given)
        assert f"void {used}_logits(const uint8_t *image" in source
        program = build(source, tmp_path, f"-D{used.upper()}_MAIN")
    done = subprocess.run([program, pgm(tmp_path / "a.pgm", np.eye(4, dtype=np.uint8)[..., None])], capture_output=True)
    assert sorted(done.stdout.decode().replace("ä\n", "ä").splitlines())[0].startswith('a "quoted" \\ one\t')
    assert {line.split(b"\t")[0] for line in done.stdout.split(b"\n")} >= {b"two ??= */ 1"}


def test_constants_and_strings_are_read_as_they_were():
    for value in (0.25, 1.0, 1e-8, 123456.789, 1 / 3, 0.0, 1e10):
        text = _float(np.float32(value))
        assert re.fullmatch(r"[0-9]+(\.[0-9]+)?(e[+-][0-9]+)?f", text) and ("." in text or "e" in text)
        assert np.float32(text[:-1]) == np.float32(value)
    assert _quoted('a"?\\1') == '"a\\042\\077\\1341"'


@needs_gcc
def test_two_nets_in_one_program(tmp_path):
    net = made_up(Architecture(model="fcn", inputs=(4, 4, 1), classes=3, width=0.05))
    for name in ("one", "two"):
        (tmp_path / f"{name}.c").write_text(to_c(net, name=name))
    both = "void one_logits(); void two_logits(); int main(void) { return one_logits == two_logits; }"
    (tmp_path / "both.c").write_text(both)
    done = subprocess.run(["gcc", "one.c", "two.c", "both.c", "-o", "both", "-lm"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "both"]).returncode == 0


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", ["fcn", "conv2"])
def test_no_compiler_warns_of_a_fast_program(tmp_path, compiler, name):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} on this machine")
    build(to_c(ssm.load(NETS / f"{name}.ssm")), tmp_path, "-O3", "-march=native", "-DNET_MAIN", compiler=compiler)


def test_a_net_beyond_a_compilers_int_is_refused(monkeypatch):
    monkeypatch.setattr(c_source, "BLOCK", 1 << 30)
    net = made_up(Architecture(model="conv2", inputs=(4, 4, 3), classes=3, width=0.1))
    with pytest.raises(UserError, match="too large for C"):
        to_c(net)
