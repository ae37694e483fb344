"""Random crops, flips and shifts of a batch of images, on the device."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

PAD = 4


def crop_and_flip(key: Key[Array, ""], images: Float[Array, "n h w c"]) -> Float[Array, "n h w c"]:
    """Return each image moved by up to 4 pixels a side and flipped left-right with probability 1/2.

    An image is padded with 4 zeros on each side; one of the 81 crops of its original size is taken, all with
    the same probability.  An image's draw depends only on the key and its position in the batch.  Can be jitted and
    vmapped.  Source: He et al. 2016, section 4.2; docs/ledger.md, row 17.
    """
    sides = 2 * PAD + 1
    # One word holds the whole draw of an image: its element of `bits` does not depend on the size of the batch.
    flip, crop = _digits(jax.random.bits(key, (len(images),)) % (2 * sides * sides), 2)
    crops = _cropped(images, PAD, *_digits(crop, sides), mode="constant")
    return jnp.where((flip == 1)[:, None, None, None], crops[:, :, ::-1], crops)


def shift(key: Key[Array, ""], images: Float[Array, "n h w c"]) -> Float[Array, "n h w c"]:
    """Return each image moved by a pixel or none in each direction, its outermost rows and columns repeated.

    The nine positions have the same probability.  An image's draw depends only on the key and its position in the
    batch.  Can be jitted and vmapped.
    """
    draws = jax.random.bits(key, (len(images),)) % 9
    return _cropped(images, 1, *_digits(draws, 3), mode="edge")


def _cropped(images: Array, pad: int, top: Array, left: Array, *, mode: str) -> Array:
    """Return a part of each padded image that is as large as the image, from a row and a column on."""
    _, height, width, channels = images.shape
    padded = jnp.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)), mode=mode)
    take = jax.vmap(lambda image, top, left: jax.lax.dynamic_slice(image, (top, left, 0), (height, width, channels)))
    return take(padded, top, left)


def _digits(number: Array, base: int) -> tuple[Array, Array]:
    """Return the lowest digit and the rest, as int32."""
    return (number % base).astype(jnp.int32), (number // base).astype(jnp.int32)
