"""Classifies images with an artefact: `python experiments/predict.py net.ssm IMAGE...`.

Needs no JAX, unless the net's frozen weights are redrawn from a seed.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from PIL import Image, UnidentifiedImageError

from paper.tables import aligned
from ssm.errors import UserError
from ssm.export import load
from ssm.runs.program import run_program

MOST_PIXELS = 1 << 24
_BACKGROUND = {False: "black", True: "white"}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Print the most probable classes of each image file (PNG and whatever else Pillow reads)."""

    net: tyro.conf.Positional[Path]
    """The artefact, as experiments/export.py writes it."""
    images: tyro.conf.Positional[tuple[Path, ...]]
    """Image files of the size that the net was trained on: 28 x 28 grey for MNIST, 32 x 32 colour for CIFAR."""
    resize: bool = False
    """Scale images of another size instead of refusing them."""
    invert: bool = False
    """Invert dark on light images, for a net that learned light on dark, as in MNIST."""
    top: int = 3
    """Number of classes to print for each image."""


def main(options: Options) -> None:
    """Classify the images.

    Raises:
        UserError: for a damaged artefact, or a file that is not an image of the right size.
    """
    if options.top < 1:
        raise UserError(f"--top={options.top}: give 1 or more")
    if not options.images:
        raise UserError("no image was named: python experiments/predict.py net.ssm IMAGE...")
    net = load(options.net).runtime()
    images = [_read(path, net.inputs, options) for path in options.images]
    cells = [["image", *(f"{number}." for number in range(1, options.top + 1))]]
    probabilities = net.probabilities(np.stack(images))
    names = net.class_names or tuple(map(str, range(probabilities.shape[1])))
    for path, row in zip(options.images, probabilities, strict=True):
        best = np.argsort(-row)[: options.top]
        cells.append([str(path), *(f"{names[index]} {row[index]:.1%}" for index in best)])
        cells[-1] += [""] * (len(cells[0]) - len(cells[-1]))
    print("\n".join(aligned(cells)))


def _read(path: Path, inputs: tuple[int, ...], options: Options) -> np.ndarray:
    height, width, channels = inputs
    if channels not in (1, 3):
        raise UserError(f"this net takes images of {channels} channels: image files have 1 or 3")
    try:
        with Image.open(path) as image:
            if image.width * image.height > MOST_PIXELS:
                raise UserError(f"{path} is {image.width} x {image.height} pixels: too large")
            if image.size != (width, height) and not options.resize:
                raise UserError(
                    f"{path} is {image.width} x {image.height} pixels, this net takes {width} x {height}: "
                    "scale it, or add --resize"
                )
            if image.has_transparency_data:  # the background shows through: black, or white if that is to be inverted
                image = image.convert("RGBA")
                image = Image.alpha_composite(Image.new("RGBA", image.size, _BACKGROUND[options.invert]), image)
            image = image.convert("L" if channels == 1 else "RGB").resize((width, height), Image.Resampling.LANCZOS)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError, ValueError, SyntaxError) as error:
        raise UserError(f"{path} is not a readable image: {error}") from error
    array = np.asarray(image, np.uint8).reshape(height, width, channels)
    return 255 - array if options.invert else array


if __name__ == "__main__":
    run_program(main, Options)
