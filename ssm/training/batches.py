"""Which samples make a batch, and what a net is given of them: a seed's keys, its orders, images on the device."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, UInt8

from ssm.data.standardize import standardize, statistics
from ssm.training.settings import pinned

INIT, ORDER, AUGMENT, STEP, TEST = 0, 1, 2, 3, 4  # what a seed's key is folded with, once per purpose
PART = 5000  # images
FIXED_ORDER_SEED = 2**31  # no seed of a run is that large


class Images(NamedTuple):
    """One part of an image data set on the device: raw bytes, standardised image by image as they are used.

    `labels` is any pytree of arrays with one entry for each image.
    """

    images: UInt8[Array, "n ..."]
    labels: Any
    mean: Float[Array, " n"]
    scale: Float[Array, " n"]


@pinned()
def images_on_device(images: np.ndarray, labels: Any) -> Images:
    """Put images [n, ...] uint8 and their labels on the default device, with each image's mean and scale."""
    # A part at a time: as floats, all of CIFAR's images would take four times their room.
    parts = [jax.jit(statistics)(images[start : start + PART]) for start in range(0, len(images), PART)]
    mean, scale = (jnp.concatenate(field) for field in zip(*parts, strict=True))
    return Images(jnp.asarray(images), jax.tree.map(jnp.asarray, labels), mean, scale)


def standardized_batch(data: Images, index: Int[Array, " batch"], key: Array | None) -> tuple[Array, Any]:
    """Return the standardised images and the labels of these indices."""
    part = gather(data, index)
    return standardize(part.images, part.mean, part.scale), part.labels


def plain_batch(data: tuple[Any, Any], index: Int[Array, " batch"], key: Array | None) -> tuple[Any, Any]:
    """Return the inputs and targets of these indices as they are."""
    return gather(data, index)


def gather(data: Any, index: Int[Array, " batch"]) -> Any:
    """Return a pytree's entries at these indices of the first axis."""
    return jax.tree.map(lambda array: array[index], data)


def count_samples(data: Any) -> int:
    """Return the length of the first axis of a pytree's arrays."""
    return len(jax.tree.leaves(data)[0])


def seed_key(seed: int | np.integer | Array) -> Array:
    """Return the key from which everything random of one seed comes; threefry, whatever the default is."""
    return jax.random.key(seed, impl="threefry2x32")


def augmentation_key(key: Array, epoch: int | Array) -> Array:
    """Return the key that an epoch's augmentation comes from, of a seed's key; each step folds its number in."""
    return jax.random.fold_in(jax.random.fold_in(key, AUGMENT), epoch)


def step_key(key: Array, step: int | Array) -> Array:
    """Return the key of a training step, counted from 0 over all epochs, of a seed's key."""
    return jax.random.fold_in(jax.random.fold_in(key, STEP), step)


@pinned()
def fixed_order(samples: int) -> np.ndarray:
    """Return the one order of the data that all seeds and epochs share under a fixed order."""
    key = jax.random.fold_in(seed_key(np.uint32(FIXED_ORDER_SEED)), ORDER)
    return np.asarray(jax.random.permutation(key, samples))


def steps_per_epoch(samples: int, batch_size: int) -> int:
    """Return the number of batches that hold all samples, a short last one included."""
    return math.ceil(samples / batch_size)


def epoch_batches(
    key: Array,
    epoch: Array,
    order: Array | None,
    *,
    samples: int,
    batch_size: int,
    passes: int,
    reshuffles: bool = True,
) -> tuple[Int[Array, "steps batch"], Float[Array, "steps batch"]]:
    """Return the indices of an epoch's batches, and 1 for each sample, 0 for the padding of a short last batch.

    order: that of all passes; None: the key's own, a new one in each pass, or with `reshuffles=False` the first in all.
    """
    steps = steps_per_epoch(samples, batch_size)
    numbers = [epoch * passes + number if reshuffles else 0 for number in range(passes)]
    orders = [pass_order(key, number, order, samples) for number in numbers]
    indices = [jnp.pad(one, (0, steps * batch_size - samples)).reshape(steps, batch_size) for one in orders]
    valid = (jnp.arange(steps * batch_size, dtype=jnp.int32) < samples).astype(jnp.float32).reshape(steps, batch_size)
    return jnp.concatenate(indices), jnp.tile(valid, (passes, 1))


def pass_order(key: Array, number: Array | int, order: Array | None, samples: int) -> Int[Array, " samples"]:
    """Return a seed's order of the data in a pass (counted from 0): the fixed one, or one of its own."""
    return reshuffled(key, number, samples) if order is None else order


def reshuffled(key: Array, number: Array | int, samples: int) -> Int[Array, " samples"]:
    """Return a seed's own order of the data in a pass, from the seed's key."""
    key = jax.random.fold_in(jax.random.fold_in(key, ORDER), number)
    # One sort of random bits; jax.random.permutation sorts twice, which costs 3 % of an epoch on a CPU.
    return jnp.argsort(jax.random.bits(key, (samples,)))
