"""A net's variables without its own initialisation, which takes as long to compile as a step of training."""

import jax
import numpy as np

from ssm.trees import flatten, unflatten


def drawn(net, images, **options):
    """Kernels of uniform values of variance 1 / fan_in, other parameters of ones, and untouched running averages."""
    rng, found = np.random.default_rng(0), jax.eval_shape(lambda x: net.init(jax.random.key(0), x, **options), images)

    def values(path, leaf):
        if path[-1] == "kernel":
            return rng.uniform(-1, 1, leaf.shape) * np.sqrt(3 / np.prod(leaf.shape[:-1]))
        return np.full(leaf.shape, path[-1] != "mean")

    return unflatten({path: values(path, leaf).astype(np.float32) for path, leaf in flatten(found).items()})
