"""Prints the state of runs, and the time left: `python experiments/status.py [RUN_OR_FOLDER ...]`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from paper.tables import aligned
from ssm.errors import UserError
from ssm.runs.program import run_program
from ssm.runs.status import Status, journals, status


@dataclass(frozen=True, kw_only=True)
class Options:
    """Print a line for each run, and each program of a sweep, from their journals."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional] = (Path("runs"),)
    """Runs, sweeps, or folders of them."""


def duration(seconds: float | None) -> str:
    """Return a time in a suitable unit."""
    if seconds is None:
        return ""
    unit, name = next((pair for pair in ((86400, "d"), (3600, "h"), (60, "min")) if seconds >= 2 * pair[0]), (1, "s"))
    return f"{seconds / unit:.0f} {name}"


def line(found: Status) -> list[str]:
    """Return a status as the cells of a row."""
    saved, wanted = found.seeds
    parent = found.folder.parent.name
    name = f"{parent}/{found.folder.name}" if parent.startswith("sweep-") else found.folder.name
    seeds = f"{saved} of {wanted}" + (f", {found.bad} excluded" if found.bad else "")
    return [name, found.state, seeds, f"{found.share:.0%}", duration(found.left), duration(found.quiet), found.reason]


def main(options: Options) -> None:
    rows = []
    for folder in journals(options.folders):
        try:
            rows.append(line(status(folder)))
        except UserError as error:  # for example the journal of a folder that was removed during its run
            rows.append([folder.name, "unknown", "", "", "", "", str(error)])
    print("\n".join(aligned([["run", "state", "seeds saved", "epochs", "left", "last sign", "reason"], *rows])))


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
