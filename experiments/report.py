"""Makes one page of one run: `python experiments/report.py RUN --out FILE.html`."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from ssm.errors import UserError
from ssm.files import save
from ssm.finished import FinishedRun, read_finished
from ssm.newest import newest_masked
from ssm.program import run_program
from ssm.tables import read_paper

HERE = Path(__file__).resolve().parent
RUNS = Path("runs")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Make one HTML page of a run, complete in itself: result, curves, masks, layers, sizes, configuration."""

    run: tyro.conf.Positional[Path | None] = None
    """The run's folder (default: the run under runs/ that finished last, and has masks)."""
    out: Path = Path("report.html")
    """File to write."""
    paper: Path = HERE / "paper.json"
    """The paper's printed numbers."""


def main(options: Options) -> None:
    """Write the page.

    Raises:
        UserError: for a folder without a finished run, a damaged file, or a page that cannot be written.
    """
    run = read_finished(options.run) if options.run else newest_masked([RUNS])
    if run is None:
        raise UserError(f"there is no finished run with masks under {RUNS}/: name one, or train one first")
    rows = read_paper(options.paper)

    from ssm.report import render

    page = render(run, rows, artifact=_exported(run) if run.has_masks else None)
    save(options.out, page)
    print(f"{options.out}: {len(page.encode()):,} bytes, of {run.name}")


def _exported(run: FinishedRun) -> int | None:
    """Return the bytes of the file that export.py makes of the run's first seed."""
    from ssm.artifact.form import to_bytes
    from ssm.artifact.making import from_run

    try:
        return len(to_bytes(from_run(run, run.mask_seeds[0])))
    except UserError as error:
        print(f"without the size of an exported file: {error}", file=sys.stderr)
        return None


if __name__ == "__main__":
    run_program(main, Options)
