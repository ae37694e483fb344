"""Raw images as users hand them to a trained net, checked before they are standardised."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ssm.errors import UserError


def plain_array(images: Any) -> np.ndarray:
    """Return images as an array of NumPy; raises UserError where they are traced."""
    try:
        return np.asarray(images)
    except TypeError:
        raise UserError(
            "the runtime computes with NumPy, not inside jax.jit: there, use net.logits(images), or "
            "net.module.apply(net.variables, net.standardize(images))"
        ) from None


def raw_images(images: Any, inputs: Sequence[int] | None) -> Any:
    """Return raw images, uint8 [n, height, width, channels], as an array: NumPy's, or JAX's where they are traced.

    inputs: the height, width and channels that the net takes; None where they are not known.

    Raises:
        UserError: for images of another dtype or shape, or none.  Floats are never cast: whether they are from 0 to 1,
            from 0 to 255 or standardised already can't be told from them.
    """
    try:
        images = np.asarray(images)
    except TypeError:  # traced
        if not hasattr(images, "dtype"):
            raise
    fits = images.ndim == 4 and images.shape[0] and (inputs is None or images.shape[1:] == tuple(inputs))
    if images.dtype == np.uint8 and fits:
        return images
    size = " of " + " x ".join(map(str, inputs)) if inputs else ""
    advice = ""
    if images.dtype != np.uint8:
        advice = "; give the images as they were before they were divided or standardised (np.uint8)"
        advice += ", or standardised floats to net.module.apply(net.variables, x) or net.runtime()(x)"
    raise UserError(
        f"images are {images.dtype} {list(images.shape)}; expected raw ones, uint8 [n, height, width, channels]{size}, "
        f"with values from 0 to 255{advice}"
    )
