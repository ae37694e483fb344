"""Makes one page of one run: `python experiments/report.py RUN --out FILE.html`."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from ssm.errors import UserError
from ssm.files import write_atomic
from ssm.finished import read_finished
from ssm.program import run_program
from ssm.tables import read_paper

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Options:
    """Make one HTML page of a run, complete in itself: result, curves, masks, layers, sizes, configuration."""

    run: tyro.conf.Positional[Path]
    """The run's folder."""
    out: Path = Path("report.html")
    """File to write."""
    paper: Path = HERE / "paper.json"
    """The paper's printed numbers."""


def main(options: Options) -> None:
    """Write the page.

    Raises:
        UserError: for a folder without a finished run, a damaged file, or a page that cannot be written.
    """
    run = read_finished(options.run)
    rows = read_paper(options.paper)

    from ssm.report import render

    page = render(run, rows)
    try:
        write_atomic(options.out, page)
    except OSError as error:
        raise UserError(f"{options.out} cannot be written: {error.strerror or error}") from error
    print(f"{options.out}: {len(page.encode()):,} bytes, of {run.name}")


if __name__ == "__main__":
    run_program(main, Options)
