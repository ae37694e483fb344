"""Classifies images with an artefact: `python experiments/predict.py net.ssm IMAGE...`.

Needs no JAX, unless the net's frozen weights are redrawn from a seed.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from image_file import read_image
from paper.tables import aligned
from ssm.errors import UserError
from ssm.export import load
from ssm.runs.program import run_program


@dataclass(frozen=True, kw_only=True)
class Options:
    """Print the most probable classes of each image file (PNG and whatever else Pillow reads)."""

    net: tyro.conf.Positional[Path]
    """The artefact, as experiments/export.py writes it."""
    images: tyro.conf.Positional[tuple[Path, ...]]
    """Image files of the size that the net was trained on: 28 x 28 grey for MNIST, 32 x 32 colour for CIFAR.  A
    camera's rotation is undone; floats and 16 bits a value are scaled, which is said."""
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
    images = []
    for path in options.images:
        # Through what is transparent the background shows: black, or white if that is to be inverted.
        background = "white" if options.invert else "black"
        image, said = read_image(path, net.inputs, resize=options.resize, background=background)
        for line in said:
            print(line, file=sys.stderr)
        images.append(255 - image if options.invert else image)
    cells = [["image", *(f"{number}." for number in range(1, options.top + 1))]]
    probabilities = net.probabilities(np.stack(images))
    names = net.class_names or tuple(map(str, range(probabilities.shape[1])))
    for path, row in zip(options.images, probabilities, strict=True):
        best = np.argsort(-row)[: options.top]
        cells.append([str(path), *(f"{names[index]} {row[index]:.1%}" for index in best)])
        cells[-1] += [""] * (len(cells[0]) - len(cells[-1]))
    print("\n".join(aligned(cells)))


if __name__ == "__main__":
    run_program(main, Options)
