import io

import numpy as np
import pytest
from PIL import Image

import ssm
from image_file import read_image
from ssm.errors import UserError
from tests.support.programs import ROOT, Place

RAMP = np.arange(6, dtype=np.uint8).reshape(2, 3) * 51  # 0 to 255
FCN = ROOT / "experiments" / "results" / "nets" / "fcn.ssm"


def read(path, inputs=(2, 3, 1), **options):
    image, said = read_image(path, inputs, **options)
    assert image.dtype == np.uint8 and image.shape == inputs
    return image[..., 0] if inputs[-1] == 1 else image, said


def saved(folder, array, suffix="tiff", **options):
    path = folder / f"image.{suffix}"
    Image.fromarray(array).save(path, **options)
    return path


# Each of the eight ways in which a camera may have been held.
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_cameras_rotation_is_undone(tmp_path, orientation):
    upright = Image.fromarray(np.kron(np.asarray([[255, 0, 0], [0, 0, 90]], np.uint8), np.ones((16, 16), np.uint8)))
    turn = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # the transposition that makes a file of each orientation
    held = upright.transpose(Image.Transpose(turn[orientation])) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    held.save(tmp_path / "held.jpg", exif=exif, quality=95)
    found, said = read(tmp_path / "held.jpg", (32, 48, 1))
    np.testing.assert_allclose(found.astype(int), np.asarray(upright, int), atol=12)
    assert not said


@pytest.mark.parametrize(
    ("values", "wanted", "said"),
    [
        ((RAMP / 255).astype(np.float32), RAMP, "floats from 0 to 1, taken as 0 to 1"),
        (RAMP.astype(np.float32) + 0.25 - RAMP / 510, RAMP, "floats from 0.25 to 254.75, taken as 0 to 255"),
        (RAMP.astype(np.uint16) * 257, RAMP, "whole numbers from 0 to 65535, taken as 0 to 65535"),
        (RAMP.astype(np.uint16), RAMP, "whole numbers from 0 to 255, taken as 0 to 255"),
        (RAMP.astype(np.int32) * 257, RAMP, "whole numbers from 0 to 65535, taken as 0 to 65535"),
    ],
)
def test_more_than_8_bits_are_scaled_and_said(tmp_path, values, wanted, said):
    path = saved(tmp_path, values.astype(np.float32) if values.dtype.kind == "f" else values)
    found, lines = read(path)
    np.testing.assert_array_equal(found, wanted)
    assert lines == [f"{path}: {said}"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (RAMP.astype(np.float32) - 1, "floats from -1 to 254: expected 0 to 255 or 0 to 1"),
        (RAMP.astype(np.float32) * 2, "floats from 0 to 510: expected"),
        (np.where(RAMP > 200, np.nan, 0).astype(np.float32), "floats from nan to nan: expected"),
        (RAMP.astype(np.int32) - 9, "whole numbers from -9 to 246: expected 0 to 255 or 0 to 65535"),
        (RAMP.astype(np.int32) << 16, r"whole numbers from 0 to 1\.67117e\+07: expected"),
    ],
)
def test_values_of_no_clear_range_are_refused(tmp_path, values, said):
    with pytest.raises(UserError, match=said):
        read(saved(tmp_path, values))


def test_grey_png_of_16_bits_and_one_bit(tmp_path):
    found, lines = read(saved(tmp_path, RAMP.astype(np.uint16) * 257, "png"))
    np.testing.assert_array_equal(found, RAMP)
    assert "taken as 0 to 65535" in lines[0]
    found, lines = read(saved(tmp_path, RAMP > 100, "png"))
    np.testing.assert_array_equal(found, np.where(RAMP > 100, 255, 0))
    assert not lines


def test_palettes_are_looked_up(tmp_path):
    image = Image.fromarray(np.asarray([[0, 1, 2], [2, 1, 0]], np.uint8)).convert("P")
    image.putpalette([255, 0, 0, 0, 255, 0, 10, 20, 30])
    image.save(tmp_path / "palette.png")
    found, said = read(tmp_path / "palette.png", (2, 3, 3))
    assert found[0].tolist() == [[255, 0, 0], [0, 255, 0], [10, 20, 30]] and not said


def test_the_background_shows_through(tmp_path):
    pixels = np.zeros((2, 3, 4), np.uint8)
    pixels[0] = 77, 77, 77, 255
    path = saved(tmp_path, pixels, "png")
    assert read(path)[0].tolist() == [[77] * 3, [0] * 3]
    assert read(path, background="white")[0].tolist() == [[77] * 3, [255] * 3]


def test_the_first_of_several_pictures_is_said(tmp_path):
    frames = [Image.fromarray(RAMP), Image.fromarray(255 - RAMP)]
    frames[0].save(tmp_path / "two.tiff", save_all=True, append_images=frames[1:])
    found, said = read(tmp_path / "two.tiff")
    np.testing.assert_array_equal(found, RAMP)
    assert said == [f"{tmp_path / 'two.tiff'}: the first of 2 pictures in it"]


def test_damaged_files_are_said(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    memory = io.BytesIO()
    Image.fromarray(RAMP).save(memory, "JPEG", exif=exif)
    whole = memory.getvalue()
    path = tmp_path / "damaged.jpg"
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(1, len(whole))] if rng.random() < 0.3 else damaged)
        try:
            read(path, (2, 3, 1), resize=True)
        except UserError as error:
            assert str(path) in str(error)


def test_predict_reads_the_same_digit_from_each_file(tmp_path):
    digit = ssm.data.load("mnist5k").test_images[7, ..., 0]
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(digit).rotate(90, expand=True).save(tmp_path / "exif6.png", exif=exif)
    Image.fromarray(digit).save(tmp_path / "upright.png")
    Image.fromarray(digit.astype(np.float32) / 255).save(tmp_path / "float.tiff")
    names = ["upright.png", "exif6.png", "float.tiff"]
    done = Place(tmp_path, tmp_path).program("predict.py", FCN, *names, "--top=1")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == names and len({tuple(row[1:]) for row in rows}) == 1
    assert done.stderr == "float.tiff: floats from 0 to 1, taken as 0 to 1\n"
