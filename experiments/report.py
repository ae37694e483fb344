"""Writes one HTML page about a run: `python experiments/report.py RUN --out FILE.html`."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from paper.tables import read_paper, with_config
from ssm.errors import UserError
from ssm.files import save
from ssm.runs.newest import newest_masked
from ssm.runs.program import run_program
from ssm.runs.reader import FinishedRun, read_finished

HERE = Path(__file__).resolve().parent
RUNS = Path("runs")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Write a self-contained HTML page about a run: result, curves, masks, layers, sizes, configuration."""

    run: tyro.conf.Positional[Path | None] = None
    """The run's folder (default: the run with masks under runs/ that finished last)."""
    out: Path = Path("report.html")
    """File to write."""
    paper: Path = HERE / "paper" / "paper.json"
    """The paper's printed numbers."""


def main(options: Options) -> None:
    """Write the page.

    Raises:
        UserError: for a folder without a finished run, a damaged file, or a page that cannot be written.
    """
    run = read_finished(options.run) if options.run else newest_masked([RUNS])
    if run is None:
        raise UserError(f"no finished run with masks under {RUNS}/: name one, or train one first")
    rows = read_paper(options.paper)

    from paper.result import result_table
    from ssm.viz import render

    result = result_table(with_config(run.summary, run.config), rows)
    page = render(run, result=result, artifact=_exported(run) if run.has_masks else None)
    save(options.out, page)
    print(f"{options.out}: {len(page.encode()):,} bytes, of {run.name}")


def _exported(run: FinishedRun) -> int | None:
    """Return the size in bytes of the file that export.py writes for the run's first seed."""
    from ssm.export.conversion import from_run
    from ssm.export.serialization import to_bytes

    try:
        return len(to_bytes(from_run(run, run.mask_seeds[0])))
    except UserError as error:
        print(f"without the size of an exported file: {error}", file=sys.stderr)
        return None


if __name__ == "__main__":
    run_program(main, Options)
