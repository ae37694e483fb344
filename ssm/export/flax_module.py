"""The parts of an artefact that need JAX: its Flax module, its variables, and the frozen weights of a seed."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from ssm.data.standardize import standardized
from ssm.errors import UserError
from ssm.export.contents import digest, kernel_path
from ssm.models.graph import Architecture
from ssm.paths import name_path
from ssm.recipes import build
from ssm.recipes.config import Config
from ssm.recipes.presets import NEUTRAL, OWN, kind
from ssm.training.batches import seed_key
from ssm.training.epoch import initial_variables, layer_name
from ssm.training.settings import pinned
from ssm.trees import unflatten

BATCH = 500  # images


def module(net: Architecture | None, precision: str, given: nn.Module | None) -> nn.Module:
    """Return the net as a plain Flax module, which takes standardised images; `given` is the user's own.

    Raises:
        UserError: if there is neither an architecture nor a module.
    """
    if net is not None:
        return build.network(net, net.classes, precision=precision)
    if given is None:
        raise UserError("this net's module is the user's own: give it, ssm.load(path, module=...)")
    return given


@pinned()
def variables(kernels: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the module's variables from kernels by layer and values by `COLLECTION/LAYER/NAME`, float32.

    Never traced: they are kept, and may be asked for first inside the user's own `jax.jit`.
    """
    arrays = {("params", *kernel_path(name)): kernel for name, kernel in kernels.items()}
    arrays |= {name_path(name): value for name, value in values.items()}
    with jax.ensure_compile_time_eval():
        return unflatten({path: jnp.asarray(array) for path, array in arrays.items()})


def logits(compute: Callable[[Any], jax.Array], images: Any) -> Any:
    """Return the logits [n, classes] of images uint8 [n, height, width, channels], computed batch by batch.

    images: at least one; NumPy's, or traced, for which the logits are traced, too.
    """
    if not isinstance(images, np.ndarray):  # traced
        return compute(images)
    return np.concatenate([compute(images[start : start + BATCH]) for start in range(0, len(images), BATCH)])


def compiled(net: nn.Module, variables: Mapping[str, Any]) -> Callable[[np.ndarray], jax.Array]:
    """Return the compiled function from uint8 images to logits."""

    @jax.jit
    def compute(images):
        return net.apply(variables, standardized(images))

    return pinned()(compute)


@lru_cache(maxsize=4)  # compiling takes a second, drawing a seed's weights some milliseconds
def _initialise(config: Config, inputs: tuple[int, ...], classes: int):
    net = build.build(config, classes=classes, folded=False)
    example = np.zeros((1, *inputs), np.float32)  # kept with the function: JAX's zeros might be traced
    return jax.jit(lambda seed: initial_variables(net, seed_key(seed), example)["frozen"]["layers"])


@pinned()
def initial_frozen(config: Config, seed: int, inputs: tuple[int, ...], classes: int) -> dict[str, np.ndarray]:
    """Return the frozen kernels of a seed by layer, as training began with them."""
    with jax.ensure_compile_time_eval():  # also where they are asked for inside the user's own jax.jit
        layers = _initialise(config, inputs, classes)(np.uint32(seed))
    return {layer_name(path): np.asarray(state.kernel) for path, state in layers.items()}


def frozen_kernels(recipe: Mapping[str, Any], net: Architecture) -> dict[str, np.ndarray]:
    """Return the frozen weights that an artefact's recipe names, by layer, drawn again from the seed.

    Raises:
        UserError: if this machine draws others.
    """
    try:
        config = Config(**{**NEUTRAL, **recipe["config"]})
    except (TypeError, ValueError, AttributeError, UserError) as error:
        raise UserError(f"its recipe of frozen weights is damaged: {error}") from error
    if config.learner or kind(config.model) == OWN:  # a file must not have modules imported
        raise UserError("its recipe of frozen weights is damaged: it names code")
    found = initial_frozen(config, recipe["seed"], net.inputs, net.classes)
    for name, wanted in recipe["hashes"].items():
        if digest(found[name]) != wanted:
            raise UserError(
                f"the frozen weights of {name} differ here from those the net was trained with (JAX "
                f"{jax.__version__}, {jax.default_backend()}): load it there, and save it dense"
            )
    return {name: found[name] for name in recipe["hashes"]}
