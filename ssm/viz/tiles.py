"""Masks as plain pictures, a square of pixels per weight, and a tile per unit or kernel."""

import io

import numpy as np
from jaxtyping import Int8

from ssm.viz.style import MINUS, PLUS

GAP = 2
"""The value between tiles, in a picture whose other values are -1, 0 and 1."""
_PALETTE = {-1: MINUS, 0: "#FFFFFF", 1: PLUS, GAP: "#B8B8B8"}


def unit_maps(
    mask: Int8[np.ndarray, "inputs units"], shape: tuple[int, int], *, columns: int
) -> Int8[np.ndarray, "h w"]:
    """Return a tile for each unit, its inputs in the shape of the image, from left to right and line by line."""
    return tiled(mask.T.reshape(-1, *shape), columns=columns)


def kernel_maps(mask: Int8[np.ndarray, "height width inputs outputs"]) -> Int8[np.ndarray, "h w"]:
    """Return a tile for each kernel: outputs from left to right, input channels from top to bottom."""
    height, width, inputs, outputs = mask.shape
    return tiled(mask.transpose(2, 3, 0, 1).reshape(inputs * outputs, height, width), columns=outputs)


def tiled(tiles: Int8[np.ndarray, "n h w"], *, columns: int) -> Int8[np.ndarray, "height width"]:
    """Return tiles in rows of `columns`, with a line of `GAP` around each; cells without a tile are `GAP` too."""
    count, height, width = tiles.shape
    columns = min(columns, max(count, 1))
    rows = -(-count // columns)
    sheet = np.full((rows * columns, height + 1, width + 1), GAP, np.int8)
    sheet[:count, 1:, 1:] = tiles
    sheet = sheet.reshape(rows, columns, height + 1, width + 1).swapaxes(1, 2)
    return np.pad(sheet.reshape(rows * (height + 1), columns * (width + 1)), ((0, 1), (0, 1)), constant_values=GAP)


def mask_png(picture: Int8[np.ndarray, "h w"], *, scale: int = 1) -> bytes:
    """Return a picture of -1, 0, 1 and `GAP` as PNG, each value a square of scale x scale pixels."""
    from PIL import Image

    codes = np.repeat(np.repeat(picture + 1, scale, axis=0), scale, axis=1).astype(np.uint8)
    image = Image.frombytes("P", codes.shape[::-1], codes.tobytes())
    image.putpalette([int(colour[place : place + 2], 16) for colour in _PALETTE.values() for place in (1, 3, 5)])
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True, bits=2)
    return buffer.getvalue()
