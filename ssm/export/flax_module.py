"""An artefact as a Flax module and its variables; all of it that needs JAX."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from ssm.data.standardize import standardize, statistics
from ssm.errors import UserError
from ssm.export.artifact import Artifact, digest, kernel_path
from ssm.ops.matmul import PRECISION
from ssm.recipes import build
from ssm.recipes.config import Config
from ssm.training.batches import seed_key
from ssm.training.epoch import initial_variables, layer_name
from ssm.trees import unflatten

BATCH = 500  # images


def module(artifact: Artifact) -> nn.Module:
    """Return the net as a plain Flax module; it takes standardised images.

    Raises:
        UserError: if it is the user's own, and was not given to `ssm.load`.
    """
    net = artifact.architecture
    if net is None:
        if artifact.given is None:
            raise UserError("this net's module is the user's own: give it, ssm.load(path, module=...)")
        return artifact.given
    return build.network(net, net.classes, precision=artifact.precision)


def variables(artifact: Artifact) -> dict[str, Any]:
    """Return the module's variables, its kernels float32."""
    leaves = {("params", *kernel_path(name)): jnp.asarray(kernel) for name, kernel in artifact.to_dense().items()}
    leaves |= {tuple(name.split("/")): jnp.asarray(value) for name, value in artifact.values.items()}
    return unflatten(leaves)


def logits(artifact: Artifact, images: np.ndarray) -> np.ndarray:
    """Return the logits [n, classes] of images uint8 [n, height, width, channels], by batches.

    Raises:
        UserError: for no images.
    """
    images = np.asarray(images)
    if images.ndim != 4 or not len(images):
        raise UserError(f"images of shape {list(images.shape)}; give at least one, [n, height, width, channels]")
    compute = artifact.compiled
    with jax.default_matmul_precision(PRECISION):
        return np.concatenate([compute(images[start : start + BATCH]) for start in range(0, len(images), BATCH)])


def compiled(artifact: Artifact) -> Callable[[np.ndarray], jax.Array]:
    """Return the compiled function from uint8 images to logits."""
    net, own = artifact.module, artifact.variables

    @jax.jit
    def compute(images):
        return net.apply(own, standardize(images, *statistics(images)))

    return compute


@lru_cache(maxsize=4)  # as compiling it takes a second, and drawing a seed's weights some milliseconds
def _initialise(config: Config, inputs: tuple[int, ...], classes: int):
    net = build.build(config, classes=classes, folded=False)
    example = jnp.zeros((1, *inputs))
    return jax.jit(lambda seed: initial_variables(net, seed_key(seed), example)["frozen"]["layers"])


def initial_frozen(config: Config, seed: int, inputs: tuple[int, ...], classes: int) -> dict[str, np.ndarray]:
    """Return the frozen kernels of a seed by layer, as training began with them."""
    layers = _initialise(config, inputs, classes)(np.uint32(seed))
    return {layer_name(path): np.asarray(state.kernel) for path, state in layers.items()}


def frozen_kernels(artifact: Artifact) -> dict[str, np.ndarray]:
    """Return the frozen weights that the artefact's recipe names, by layer, made again from the seed.

    Raises:
        UserError: if they come out otherwise on this machine than they were.
    """
    assert artifact.recipe is not None and artifact.architecture is not None
    net = artifact.architecture
    try:
        config = Config(**artifact.recipe["config"])
    except (TypeError, ValueError, AttributeError, UserError) as error:
        raise UserError(f"its recipe of frozen weights is damaged: {error}") from error
    found = initial_frozen(config, artifact.recipe["seed"], net.inputs, net.classes)
    for name, wanted in artifact.recipe["hashes"].items():
        if digest(found[name]) != wanted:
            raise UserError(
                f"the frozen weights of {name} come out otherwise here than where the net was trained (JAX "
                f"{jax.__version__}, {jax.default_backend()}): load it there, and save it dense"
            )
    return {name: found[name] for name in artifact.recipe["hashes"]}
