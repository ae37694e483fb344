"""From a configuration to the masked net, its data on the device, and its first state."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array
from jaxtyping import Float, Int, UInt8

from ssm import initializers, learners, thresholds
from ssm.data.standardize import statistics
from ssm.initializers import Initializer
from ssm.models import MODELS, RESNETS
from ssm.models.graph import Architecture
from ssm.ops import matmul
from ssm.ops.convolution import Form, conv_general_dilated
from ssm.recipes.config import Config
from ssm.recipes.presets import ELUS_FACTOR
from ssm.supermask import Supermask

INIT, ORDER, AUGMENT = 0, 1, 2  # what a seed's key is folded with, once per purpose
PART = 5000  # images
FIXED_ORDER_SEED = 2**31  # no seed of a run is that large


class Split(NamedTuple):
    """One part of a data set as it lies on the device: raw bytes, standardised image by image as they are used."""

    images: UInt8[Array, "n h w c"]
    labels: Int[Array, " n"]
    mean: Float[Array, " n"]
    scale: Float[Array, " n"]


def split(images: np.ndarray, labels: np.ndarray) -> Split:
    """Put images [n, h, w, c] uint8 and labels [n] on the default device, with each image's mean and scale."""
    # A part at a time: as floats, all of CIFAR's images would take four times their room.
    parts = [jax.jit(statistics)(images[start : start + PART]) for start in range(0, len(images), PART)]
    mean, scale = (jnp.concatenate(field) for field in zip(*parts, strict=True))
    return Split(jnp.asarray(images), jnp.asarray(labels, jnp.int32), mean, scale)


def kernel_init(config: Config) -> Initializer:
    """Return the initialiser of the kernels that a configuration names."""
    options = {"paper_formula": {"p0": config.p0}}
    options |= {scale: {"factor": config.factor} for scale in ("he", "elus")}
    init = initializers.by_name(config.init, config.weight_distribution, **options.get(config.init, {}))
    if config.precision == "float32" or config.method == "baseline":
        return init
    # A frozen constant that is exact in bfloat16 makes every effective weight exact in the products, too.
    return lambda key, shape, dtype=jnp.float32: matmul.round_to_bfloat16(init(key, shape, dtype))


def build(config: Config, *, classes: int = 10, form: Form = "auto") -> Supermask:
    """Return the net of a configuration with `classes` outputs, masked by its method's learner.

    `form` forces a form of the convolutions (`ssm.ops.convolution`): they differ in speed, and in rounding alone.
    """
    module = network(config, classes, precision=config.precision, form=form, kernel_init=kernel_init(config))
    return Supermask(
        module,
        learner=learners.LEARNERS[config.method],
        threshold=thresholds.parse(config.threshold, one_sided=config.method == "binary"),
        score_init=score_init(config),
        others="trained",  # scales and offsets of batch normalisation, where the net has them
    )


def network(
    net: Config | Architecture, classes: int, *, precision: str, form: Form = "auto", **options: Any
) -> nn.Module:
    """Return the network that `net` names, with the products and convolutions of a precision; `options` are Flax's."""
    rounds = precision == "bfloat16"
    if net.model in RESNETS:
        options |= {name: getattr(net, name) for name in ("projections", "batch_norm", "stem_affine")}
    return MODELS[net.model](
        classes=classes,
        width=net.width,
        dot_general=matmul.bfloat16_dot_general if rounds else None,
        conv_general_dilated=partial(conv_general_dilated, form=form, bfloat16=rounds),
        **options,
    )


def score_init(config: Config) -> Initializer:
    """Return the initialiser of the scores; ELUS has the model's own factor, whatever that of the weights is."""
    options = {"factor": ELUS_FACTOR[config.model]} if config.score_scale == "elus" else {}
    return initializers.by_name(config.score_scale, config.score_distribution, **options)


def seed_key(seed: int | np.integer | Array) -> Array:
    """Return the key from which everything random of one seed comes; threefry, whatever the default is."""
    return jax.random.key(seed, impl="threefry2x32")


def augmentation_key(key: Array, epoch: int | Array) -> Array:
    """Return the key that an epoch's augmentation comes from, of a seed's key; each step folds its number in."""
    return jax.random.fold_in(jax.random.fold_in(key, AUGMENT), epoch)


def fixed_order(samples: int) -> np.ndarray:
    """Return the one order of the data that all seeds and epochs share under `--order=fixed`."""
    key = jax.random.fold_in(seed_key(np.uint32(FIXED_ORDER_SEED)), ORDER)
    return np.asarray(jax.random.permutation(key, samples))


def steps_per_epoch(samples: int, batch_size: int) -> int:
    """Return the number of batches that hold all samples, a short last one included."""
    return math.ceil(samples / batch_size)
