"""How many weights each layer keeps, and random masks of that many ones."""

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Key

from ssm.errors import UserError, require
from ssm.learners.base import Layers, each
from ssm.learners.options import require_one_of
from ssm.learners.selection import kept_of, largest

Distribution = Literal["erk", "er", "uniform"]


def check_shares(**shares: Any) -> None:
    """Raise UserError unless each share, by the name of its option, is above 0 and at most 1."""
    for name, share in shares.items():
        require(share, name, "above 0 and at most 1", lambda value: 0 < value <= 1)


def check_counts(**counts: Any) -> None:
    """Raise UserError unless each number, by the name of its option, is a whole one above 0."""
    for name, count in counts.items():
        require(count, name, "a whole number above 0", lambda value: value == int(value) > 0)


def layer_densities(
    kernels: Mapping[str, Array], density: float, distribution: Distribution = "erk", *, dense: Collection[str] = ()
) -> dict[str, float]:
    """Return the share of ones of each layer's mask, for a share `density` of all layers together.

    `erk` gives a layer the share eps * sum(shape) / prod(shape) of its kernel's shape, `er` of its last two axes alone
    (a convolution's channels), `uniform` the same share to each.  A layer whose share would be above 1, and those in
    `dense`, are dense, and eps is solved again for the others.  Sources: Mocanu et al. 2018 (er), Evci et al. 2020
    (erk), and the program google-research/rigl, on whose rounding eps depends.

    Raises UserError where `dense` leaves nothing to the other layers.
    """
    shapes = {path: jnp.shape(kernel) for path, kernel in kernels.items()}
    sizes = {path: math.prod(shape) for path, shape in shapes.items()}
    full, eps = set(dense), 0.0
    if distribution == "uniform":
        return {path: 1.0 if path in full else density for path in shapes}
    axes = {path: shape if distribution == "erk" else shape[-2:] for path, shape in shapes.items()}
    raw = {path: sum(own) / math.prod(own) for path, own in axes.items()}
    while loose := [path for path in shapes if path not in full]:
        room = sum(kept_of(sizes[path], density) for path in loose)
        room -= sum(sizes[path] - kept_of(sizes[path], density) for path in full)
        if room <= 0:
            raise UserError(f"a density of {density} is all taken by the dense layers {', '.join(full)}; raise it.")
        eps = room / sum(raw[path] * sizes[path] for path in loose)
        most = max(raw[path] for path in loose)
        if most * eps <= 1:
            break
        full |= {path for path in loose if raw[path] == most}
    return {path: 1.0 if path in full else eps * raw[path] for path in shapes}


def random_masks(
    density: float, distribution: Distribution, dense_output: bool = False
) -> Callable[[Key[Array, ""], Mapping[str, Array]], Layers]:
    """Return the function (key, kernels) -> random masks with exactly `kept_of(size, share)` ones in each layer.

    The shares are `layer_densities`; under `dense_output` the output layer is dense.
    """
    require_one_of(distribution, "distribution", get_args(Distribution))

    def start(key, kernels):
        dense = [output_layer(kernels)] if dense_output else []
        shares = layer_densities(kernels, density, distribution, dense=dense)

        def drawn(path, key):
            kernel = kernels[path]
            return top(jax.random.uniform(key, kernel.shape, kernel.dtype), kept_of(kernel.size, shares[path]))

        return each(kernels, key, drawn)

    return start


def scattered_masks(
    epsilon: float, dense_output: bool = False
) -> Callable[[Key[Array, ""], Mapping[str, Array]], Layers]:
    """Return the function (key, kernels) -> masks whose ones are drawn each by itself.

    The probability is epsilon (n_in + n_out) / (n_in n_out), where n_in counts a convolution's places, too; layers
    where it would be above 1 are dense, and so is the output layer under `dense_output`.  Source: Mocanu et al. 2018.
    """

    def start(key, kernels):
        full = output_layer(kernels) if dense_output else None

        def drawn(path, key):
            kernel, outputs = kernels[path], kernels[path].shape[-1]
            share = 1.0 if path == full else epsilon * (1 / outputs + outputs / kernel.size)
            return jax.random.bernoulli(key, min(1.0, share), kernel.shape).astype(kernel.dtype)

        return each(kernels, key, drawn)

    return start


def top(scores: Float[Array, "..."], number: Any, among: Array | None = None) -> Float[Array, "..."]:
    """Return a mask of the `number` largest scores among the ones of a mask; of equal scores, the first.

    number: an int, traced or not, of at most the ones of `among`.
    """
    allowed = jnp.ones(scores.shape, bool) if among is None else among > 0
    flat = jnp.where(allowed, scores, jnp.nan).ravel()  # which is never kept
    # The last of equal ones in reverse order are the first.
    chosen = largest(flat[::-1], number)[::-1].reshape(scores.shape)
    return (chosen & allowed).astype(scores.dtype)


def cubic_counts(total: int, first: float, last: float, times: int) -> list[int]:
    """Return int(total d_t) of the shares d_t = last + (first - last) (1 - t / times)^3, t = 0..times - 1; at least 1.

    Source: Zhu and Gupta 2017; rounded as the program VITA-Group/GraNet does, which counts what is pruned.
    """
    pruned = ((1 - first) + (first - last) * (1 - (1 - time / times) ** 3) for time in range(times))
    return [max(1, int(total * (1 - share))) for share in pruned]


def output_layer(paths: Collection[str]) -> str:
    """Return the last of some layers by name, numbers by their value: `Dense_10/kernel` after `Dense_9/kernel`.

    Of a net whose names say nothing of the order, this is any layer: there `by_layer` says which is the output's.
    """
    return max(paths, key=lambda path: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path)])
