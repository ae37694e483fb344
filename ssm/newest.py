"""The run that a user most likely means: the one that was finished last."""

import os
from collections.abc import Sequence
from pathlib import Path

from ssm.errors import UserError
from ssm.finished import FinishedRun, find_finished
from ssm.results import mask_path


def newest_masked(folders: Sequence[str | os.PathLike[str]], *, model: str | None = None) -> FinishedRun | None:
    """Return the run, of a model if one is named, that added masks last, from the first of the folders that has any.

    None if none has.  A folder that isn't there, or holds no run, is passed over.
    """
    for folder in folders:
        try:
            found = find_finished([Path(folder)])
        except UserError:  # not there, or no seed in it is finished
            continue
        fitting = [run for run in found if model in (None, run.setting("model")) and run.has_masks]
        if fitting:
            return max(fitting, key=_finished)
    return None


def _finished(run: FinishedRun) -> tuple[float, str]:
    return max(mask_path(run.folder, seed).stat().st_mtime for seed in run.mask_seeds), run.name
