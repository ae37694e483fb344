"""The runs in the user's folders."""

from collections.abc import Sequence
from pathlib import Path

from paper.tables.printed import Record, with_config
from ssm.runs.reader import find_finished


def find_runs(folders: Sequence[Path]) -> dict[str, Record]:
    """Read the summaries of runs, or of the runs in folders, by name; of two with one name, the larger.

    Beside the additions of `with_config`, each has the `finished` run itself, for data outside its summary.

    Raises:
        UserError, DamagedRun: as `ssm.runs.reader.find_finished` does.
    """
    return {run.name: with_config(run.summary, run.config) | {"finished": run} for run in find_finished(folders)}
