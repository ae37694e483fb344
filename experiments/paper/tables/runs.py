"""The runs in the folders that a user names."""

from collections.abc import Sequence
from pathlib import Path

from paper.tables.printed import Record, with_config
from ssm.runs.reader import find_finished


def find_runs(folders: Sequence[Path]) -> dict[str, Record]:
    """Read the summaries in folders that are runs or hold some, by name; of two with one name, the larger.

    Beside what `with_config` adds, a summary has the `finished` run itself, for what is not in its summary.

    Raises:
        UserError: as `ssm.runs.reader.find_finished` does.
    """
    return {run.name: with_config(run.summary, run.config) | {"finished": run} for run in find_finished(folders)}
