"""Image files as a net takes them: upright, with values from 0 to 255, of the net's size and channels."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from ssm.errors import UserError

MOST_PIXELS = 1 << 24


def read_image(
    path: Path, inputs: tuple[int, ...], *, resize: bool = False, background: str = "black"
) -> tuple[np.ndarray, list[str]]:
    """Return an image, uint8 [height, width, channels], and what is to be said of how its values were read.

    inputs: height, width and channels (1 or 3) of the net.  resize: scales another size.  background: what shows
    through where the image is transparent.  A camera's rotation (EXIF) is undone.

    Raises:
        UserError: for a file that is no image, has another size, or values whose range is not clear.
    """
    height, width, channels = inputs
    if channels not in (1, 3):
        raise UserError(f"this net takes images of {channels} channels: image files have 1 or 3")
    try:
        with Image.open(path) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                raise UserError(f"{path} is {opened.width} x {opened.height} pixels: too large")
            frames = getattr(opened, "n_frames", 1)
            image = ImageOps.exif_transpose(opened)
        if image.size != (width, height) and not resize:
            raise UserError(
                f"{path} is {image.width} x {image.height} pixels, this net takes {width} x {height}: "
                "scale it, or add --resize"
            )
        said = [f"{path}: the first of {frames} pictures in it"] if frames > 1 else []
        if image.mode[0] in "IF":  # 16 or 32 bits a value, which Pillow's `convert` would cut at 255
            if image.has_transparency_data:
                raise UserError(f"{path} has a transparent value in more than 8 bits: save it with 8")
            image, range_ = _eight_bits(image, path)
            said.append(f"{path}: {range_}")
        if image.has_transparency_data:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, background), image)
        image = image.convert("L" if channels == 1 else "RGB").resize((width, height), Image.Resampling.LANCZOS)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except UserError:
        raise
    except Exception as error:  # a damaged file makes Pillow's many readers raise whatever they come across
        raise UserError(f"{path} is not a readable image: {error or type(error).__name__}") from error
    return np.asarray(image, np.uint8).reshape(height, width, channels), said


def _eight_bits(image: Image.Image, path: Path) -> tuple[Image.Image, str]:
    """Return a grey image of more than 8 bits a value as one of 8, and in words which range it was taken to have."""
    values = np.asarray(image)
    low, high = values.min(), values.max()
    kind, full, factor = ("floats", 1, 255) if values.dtype.kind == "f" else ("whole numbers", 65535, 1 / 257)
    # Nothing that is meant to be from 0 to 65535 stays below 256 everywhere, nor from 0 to 255 below 1.
    for top, scale in sorted([(255, 1), (full, factor)]):
        if low >= 0 and high <= top:
            range_ = f"{kind} from {low:g} to {high:g}, taken as 0 to {top}"
            return Image.fromarray(np.rint(values * float(scale)).astype(np.uint8)), range_
    raise UserError(
        f"{path} has {kind} from {low:g} to {high:g}: expected 0 to 255 or 0 to {full}; scale them, and save the image "
        "with 8 bits a value"
    )
