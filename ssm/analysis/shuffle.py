"""A mask's elements at random places: what is left of it is how many there are of each."""

import numpy as np
from jaxtyping import Int8


def shuffled(mask: Int8[np.ndarray, "..."], rng: np.random.Generator) -> Int8[np.ndarray, "..."]:
    """Return one layer's mask with its elements at random places, every order as likely as any other.

    Shape, density and the shares of the signs stay; rows and columns lose their identity.  `mask` is not changed.
    """
    return rng.permutation(mask.reshape(-1)).reshape(mask.shape)
