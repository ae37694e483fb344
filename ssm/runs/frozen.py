"""Frozen weights that are made again from a seed, beside the hash of those that a run trained."""

import warnings
from collections.abc import Mapping
from typing import Any

import jax

from ssm.errors import UserError
from ssm.runs.reader import FinishedRun
from ssm.runs.reproduction import environment_of
from ssm.training.frozen import frozen_hash


def check_frozen(run: FinishedRun, seed: int, layers: Mapping[str, Any]) -> bool:
    """Return whether a run's hash confirms frozen weights by layer, made again; a warning says if it keeps none.

    Raises:
        UserError: if they are others than those that the seed was trained with.
    """
    kept, own = run.frozen_hash(seed), frozen_hash(layers)
    if kept is own is None:  # nothing is frozen
        return True
    if kept is None:
        warnings.warn(
            f"{run.folder} is of an older version and keeps no hash of its frozen weights: they are drawn again from "
            "the seed, unchecked",
            stacklevel=3,
        )
        return False
    if own != kept:
        then = environment_of(run, seed)
        raise UserError(
            f"{run.folder}: the frozen weights that seed {seed} gives here (JAX {jax.__version__}, "
            f"{jax.default_backend()}) are not those that it was trained with (JAX {then.get('jax', 'unknown')}, "
            f"{then.get('backend', 'unknown')}): do this with that version there, or train the seed again here"
        )
    return True
