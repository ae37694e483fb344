"""Per-image standardisation in two parts: statistics once, then their application to each gathered batch."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Real


def statistics(images: Real[Array, "n ..."]) -> tuple[Float32[Array, " n"], Float32[Array, " n"]]:
    """Mean and scale of each image over its own pixels and channels, for `standardize`.

    `images` is uint8 (values 0 to 255) or float [n, ...]; both results are float32 [n], in the unit of the pixels
    and its inverse. scale = 1 / max(standard deviation, 1 / sqrt(number of values)): a constant image becomes 0.
    Can be jitted and vmapped. Source: tf.image.per_image_standardization, as used by the authors' program.
    """
    values = jnp.asarray(images).astype(jnp.float32).reshape(len(images), -1)
    count = values.shape[1]
    mean = values.mean(axis=1)
    # From the deviations, not from the mean of squares, which cancels where an image is almost constant.
    variance = jnp.square(values - mean[:, None]).mean(axis=1)
    return mean, 1 / jnp.maximum(jnp.sqrt(variance), 1 / math.sqrt(count))


def standardize(
    images: Real[Array, "n ..."], mean: Float32[Array, " n"], scale: Float32[Array, " n"]
) -> Float32[Array, "n ..."]:
    """(image - mean) * scale for each image: uint8 or float [n, ...] with float32 [n] twice gives float32 [n, ...].

    `mean` and `scale` come from `statistics` of the same images. Can be jitted and vmapped.
    """

    def along(per_image: jax.Array) -> jax.Array:
        return per_image.reshape(-1, *(1,) * (images.ndim - 1))

    return (jnp.asarray(images).astype(jnp.float32) - along(mean)) * along(scale)


def standardized(images: Real[Array, "n ..."]) -> Float32[Array, "n ..."]:
    """Return images standardised by their own statistics: uint8 (0 to 255) or float [n, ...] gives float32 [n, ...].

    So a net is given them: `net.apply(variables, ssm.data.standardized(images))`.  The authors' program does it a
    second time after augmentation, whose zeros change an image's mean and variance (docs/ledger.md, row 17).
    Can be jitted and vmapped.
    """
    return standardize(images, *statistics(images))
