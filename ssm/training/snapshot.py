"""A group of seeds in the middle of its training, as host arrays: taken from the devices, and put back."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from ssm.errors import UserError
from ssm.plateau import PlateauState
from ssm.training.epoch import Program
from ssm.training.step import State


class Failure(NamedTuple):
    """Why a seed was excluded: the epoch (from 1) and the reason, in words that name the layer."""

    epoch: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A group's training after some epochs; all lists are in the order of `members`.

    members: keys of a configuration and a seed.
    arrays: by path in the state, [members, ...]; params, optimiser, averages of batch statistics.
    frozen: SHA-256 of each member's frozen arrays, which are not stored.
    plateaus: each one's state of the plateau schedule.
    failures: by place in the group, those that were excluded.
    history: each one's rows so far.
    kept: by hidden layer, which units the members still train, [members, units]; empty if all.
    """

    members: tuple[str, ...]
    epoch: int
    arrays: Mapping[str, np.ndarray]
    frozen: tuple[str, ...]
    plateaus: tuple[PlateauState, ...]
    failures: Mapping[int, Failure]
    history: Sequence[Sequence[Mapping[str, Any]]]
    kept: Mapping[str, np.ndarray] = field(default_factory=dict)

    def of(self, members: Sequence[str]) -> "Snapshot":
        """Return the part of some of the members, in the order in which they are given."""
        rows = [self.members.index(member) for member in members]
        return Snapshot(
            members=tuple(members),
            epoch=self.epoch,
            arrays={path: array[rows] for path, array in self.arrays.items()},
            frozen=tuple(self.frozen[row] for row in rows),
            plateaus=tuple(self.plateaus[row] for row in rows),
            failures={place: self.failures[row] for place, row in enumerate(rows) if row in self.failures},
            history=[self.history[row] for row in rows],
            kept={layer: flags[rows] for layer, flags in self.kept.items()},
        )


def _changing(state: State, *, updated: bool) -> tuple[Any, ...]:
    """Return the part of a state that training changes; `updated` says whether the learner's state is part of it."""
    return (state.params, state.optimizer, state.rest, *([state.learner] if updated else []))


def _constant(state: State, *, updated: bool) -> tuple[Any, ...]:
    return (state.fixed, *([] if updated else [state.learner]))


def _by_path(tree: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def stored_arrays(state: State, count: int, *, updated: bool) -> dict[str, np.ndarray]:
    """Return what a snapshot stores of the first so many seeds, by path; on a CPU possibly the state's own memory."""
    changing = jax.device_get(_changing(state, updated=updated))
    return {path: np.asarray(leaf)[:count] for path, leaf in _by_path(changing).items()}


def frozen_hashes(state: State, count: int, *, updated: bool) -> tuple[str, ...]:
    """Return the SHA-256 of all that training leaves as it is, of each of the first so many seeds."""
    hashes = [hashlib.sha256() for _ in range(count)]
    for path, leaf in _by_path(jax.device_get(_constant(state, updated=updated))).items():
        for seed, one in enumerate(hashes):
            one.update(f"{path} {leaf.dtype} {leaf.shape[1:]} ".encode())
            one.update(np.ascontiguousarray(leaf[seed]).tobytes())
    return tuple(one.hexdigest() for one in hashes)


def restored(
    program: Program,
    state: State,
    begin: Snapshot,
    members: Sequence[str],
    frozen: Sequence[str],
    rows: Sequence[int],
    *,
    updated: bool,
) -> State:
    """Return a state just started, with the arrays of a snapshot of the same members; `rows` places them, padding too.

    Raises UserError where the snapshot is of other members or arrays, or the frozen weights made now are not those that
    it was trained with.
    """
    fresh = _changing(state, updated=updated)
    expected = {path: (leaf.shape[1:], leaf.dtype) for path, leaf in _by_path(fresh).items()}
    stored = {path: (array.shape[1:], array.dtype) for path, array in begin.arrays.items()}
    if tuple(members) != begin.members or expected != stored:
        raise UserError("the checkpoint is of other seeds or another net; start over with --fresh")
    if tuple(frozen) != begin.frozen:
        raise UserError(
            "the frozen weights that the seeds give now are not those that the checkpoint was trained with: another "
            "version of JAX, or another backend? Resume where it was started, or start over with --fresh"
        )
    arrays = [program.place(begin.arrays[path][list(rows)]) for path in expected]
    params, optimizer, rest, *learner = jax.tree.unflatten(jax.tree.structure(fresh), arrays)
    state = state._replace(params=params, optimizer=optimizer, rest=rest)
    return state._replace(learner=learner[0]) if updated else state
