"""A seed's frozen weights as a hash, whichever way a trainer or a version of it holds them."""

import hashlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ssm.training.epoch import layer_name
from ssm.training.step import State, oriented
from ssm.training.task import Task


def frozen_hash(layers: Mapping[str, Any]) -> str | None:
    """Return 16 hex digits of frozen kernels by layer (`Dense_0`), host arrays; None if nothing is frozen.

    They are of each layer's name, dtype, shape and bytes.  What is no array is a learner's own state, of whose arrays
    all are taken.
    """
    digest, found = hashlib.sha256(), False
    for name, layer in sorted(layers.items()):
        for path, leaf in jax.tree_util.tree_leaves_with_path(layer):
            array = np.ascontiguousarray(leaf)
            digest.update(f"{name}{jax.tree_util.keystr(path)} {array.dtype} {array.shape} ".encode())
            digest.update(array.tobytes())
            found = True
    return digest.hexdigest()[:16] if found else None


def state_kernels(task: Task, state: State, index: int) -> dict[str, Any]:
    """Return the frozen kernels of a seed by layer, of a state on the host or the devices that was just started."""
    own = oriented(task, jax.tree.map(lambda leaf: np.asarray(leaf[index]), state.learner))
    return {layer_name(path): getattr(layer, "kernel", layer) for path, layer in own.items()}


def state_hashes(task: Task, state: State, count: int) -> list[str | None]:
    """Return `frozen_hash` of each of the first so many seeds of a state that was just started."""
    host = state._replace(learner=jax.device_get(state.learner))
    return [frozen_hash(state_kernels(task, host, index)) for index in range(count)]
