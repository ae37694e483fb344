"""Between a group's state on the devices and the host arrays of a snapshot."""

import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ssm.errors import UserError
from ssm.runs.checkpoint import Snapshot
from ssm.training.epoch import Program, State


def _changing(state: State) -> Any:
    """Return the part of a state that training changes."""
    return state.form.params, state.optimiser, state.rest


def _by_path(tree: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def stored_arrays(state: State, count: int) -> dict[str, np.ndarray]:
    """Return what a snapshot stores of the first so many seeds, by path; on a CPU maybe the state's own memory."""
    return {path: np.asarray(leaf)[:count] for path, leaf in _by_path(jax.device_get(_changing(state))).items()}


def frozen_hashes(state: State, count: int) -> tuple[str, ...]:
    """Return the SHA-256 of all that training leaves as it is, of each of the first so many seeds."""
    hashes = [hashlib.sha256() for _ in range(count)]
    for path, leaf in _by_path(jax.device_get((state.form.frozen, state.form.signs))).items():
        for seed, one in enumerate(hashes):
            one.update(f"{path} {leaf.dtype} {leaf.shape[1:]} ".encode())
            one.update(np.ascontiguousarray(leaf[seed]).tobytes())
    return tuple(one.hexdigest() for one in hashes)


def restored(
    program: Program, state: State, begin: Snapshot, members: Sequence[str], frozen: Sequence[str], rows: Sequence[int]
) -> State:
    """Return a state just started, with the arrays of a snapshot of the same members; `rows` places them, padding too.

    Raises UserError where the snapshot is of other members or arrays, or the frozen weights made now are not those that
    it was trained with.
    """
    fresh = _changing(state)
    expected = {path: (leaf.shape[1:], leaf.dtype) for path, leaf in _by_path(fresh).items()}
    found = {path: (array.shape[1:], array.dtype) for path, array in begin.arrays.items()}
    if tuple(members) != begin.members or expected != found:
        raise UserError("the checkpoint is of other seeds or another net; start over with --fresh")
    if tuple(frozen) != begin.frozen:
        raise UserError(
            "the frozen weights that the seeds give now are not those that the checkpoint was trained with: another "
            "version of JAX, or another backend? Go on where it began, or start over with --fresh"
        )
    arrays = [program.place(begin.arrays[path][list(rows)]) for path in expected]
    params, optimiser, rest = jax.tree.unflatten(jax.tree.structure(fresh), arrays)
    return State(state.form._replace(params=params), optimiser, rest)
