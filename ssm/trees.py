"""Nested parameter trees as flat dictionaries by path, and back."""

import math
from collections.abc import Mapping
from typing import Any

import jax
from flax.traverse_util import flatten_dict, unflatten_dict
from jax import Array

from ssm.paths import Path

Tree = Mapping[str, Any]


def flatten(tree: Tree) -> dict[Path, Array]:
    """Return the leaves of a nested dictionary by their path."""
    return flatten_dict(tree)  # type: ignore[return-value]


def unflatten(leaves: Mapping[Path, Any]) -> dict[str, Any]:
    """Return the nested dictionary of leaves by path."""
    return unflatten_dict(leaves)  # type: ignore[arg-type]


def count_weights(tree: Any) -> int:
    """Return the number of elements in all leaves of a tree of arrays (or of shapes from `jax.eval_shape`)."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))
