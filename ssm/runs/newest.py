"""The run that a user most likely means: the one that was finished last."""

import os
from collections.abc import Sequence
from pathlib import Path

from ssm.runs.reader import FinishedRun, find_finished
from ssm.runs.folder import mask_path

CHECKOUT = 60.0
"""Seconds within which a checkout writes all its files."""


def newest_masked(folders: Sequence[str | os.PathLike[str]], *, model: str | None = None) -> FinishedRun | None:
    """Return the run, of a model if one is named, that added masks last, from the first of the folders that has any.

    None if none has.  A folder that isn't there, or holds no run with finished seeds, is skipped.  Of runs that are
    equally old, as in a fresh checkout, the one with the most masks counts.

    Raises:
        UserError: for a damaged run.
    """
    for folder in folders:
        if not any(Path(folder).glob("*/summary.json")):
            continue
        found = find_finished([Path(folder)])
        fitting = [run for run in found if model in (None, run.setting("model")) and run.has_masks]
        if fitting:
            return max(fitting, key=_finished)
    return None


def _finished(run: FinishedRun) -> tuple[int, int, str]:
    last = max(mask_path(run.folder, seed).stat().st_mtime for seed in run.mask_seeds)
    return int(last // CHECKOUT), len(run.mask_seeds), run.name
