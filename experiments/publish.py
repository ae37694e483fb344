"""Copies the small files of a run to a folder under version control: `python experiments/publish.py RUN DEST`."""

import csv
import io
import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from ssm.errors import UserError
from ssm.files import write_atomic
from ssm.runs.example_file import example_path
from ssm.runs.folder import mask_path
from ssm.runs.history import curve, read_history
from ssm.runs.program import run_program
from ssm.runs.reader import read_finished
from ssm.runs.value_file import value_path
from ssm.runs.weight_file import weight_path

LIMIT = 100_000
"""Bytes per file; larger ones do not belong in the repository."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Copy a run's configuration, environment and summary, its curve over the seeds, and each seed's masks, values,
    examples and weights, to DEST/NAME."""

    run: tyro.conf.Positional[Path]
    """The run's folder."""
    dest: tyro.conf.Positional[Path]
    """The folder to copy to, such as experiments/results."""
    masks: int | None = None
    """How many seeds' masks to copy (default: all; 0 for none).  A baseline has none."""


def main(options: Options) -> None:
    """Publish the run; nothing is written unless every file exists and is small, but that large weights are left out.

    Raises:
        UserError: for a folder that is not a run, is the copy itself, or cannot be written, or a file above the limit.
    """
    if options.masks is not None and options.masks < 0:
        raise UserError(f"--masks={options.masks}: give 0 or more")
    run = options.run.resolve()
    if (options.dest / run.name).resolve() == run:
        raise UserError(f"{options.dest} is the folder that the run is in; name another to copy it to.")
    finished = read_finished(run)
    failed = [entry["seed"] for entry in finished.summary["failed"]]
    names = ["config.json", "environment.json", "summary.json"]
    for seed in finished.mask_seeds[: options.masks]:
        own = (mask_path(run, seed), value_path(run, seed), example_path(run, seed), weight_path(run, seed))
        names += [str(path.relative_to(run)) for path in own if path.exists()]
    try:
        files = {name: (run / name).read_bytes() for name in names}
    except OSError as error:
        raise UserError(f"{error.filename} cannot be read: {error.strerror}") from error
    large = [name for name, data in files.items() if name.startswith("weights/") and len(data) > LIMIT]
    for name in large:
        print(
            f"without {name}: it has {len(files.pop(name)):,} bytes; at most {LIMIT:,} are published", file=sys.stderr
        )
    points = curve(read_history(run / "history.csv"), failed=failed)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(points[0] if points else ["epoch", "seeds"])
    writer.writerows([f"{value:.6g}" for value in point.values()] for point in points)
    files["curve.csv"] = buffer.getvalue().encode()
    for name, data in files.items():
        if len(data) > LIMIT:
            raise UserError(f"{name} of {run.name} has {len(data):,} bytes; at most {LIMIT:,} are published")
    try:
        dest = options.dest / run.name
        for name, data in files.items():
            write_atomic(dest / name, data)
        for path in [
            path for kind in ("masks", "values", "examples", "weights") for path in dest.glob(f"{kind}/*.npz")
        ]:
            if str(path.relative_to(dest)) not in files:  # from an earlier copy with more seeds
                path.unlink()
    except OSError as error:
        raise UserError(f"{options.dest / run.name} cannot be written: {error.strerror or error}") from error
    print(options.dest / run.name)


if __name__ == "__main__":
    run_program(main, Options)
