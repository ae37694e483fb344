"""A run's course as TensorBoard's event files, one curve for each seed."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ssm.runs.progress import Report
from ssm.training.loop import Progress

FOLDER = "tensorboard"
FLUSH_SECONDS = 10  # what a crash may lose here; the journal loses nothing


@contextmanager
def board(folder: Path) -> Iterator[Report]:
    """Give a report that writes every seed's row into `folder/tensorboard/seed-0003`, for `tensorboard --logdir`.

    A sweep's rows are under the names of their runs.  Epochs that come again after a resume take the place of those
    written before.
    """
    from tensorboardX import SummaryWriter  # takes a second to import, and is asked for seldom

    with ExitStack() as stack:
        writers: dict[Path, SummaryWriter] = {}

        def report(now: Progress) -> None:
            for place, row in zip(now.places, now.rows, strict=True):
                epoch = int(row["epoch"])
                run = now.runs[place] if now.runs[place] != folder.name else ""  # a sweep's folder has many
                where = folder / FOLDER / run / f"seed-{int(row['seed']):04d}"
                if where not in writers:
                    writer = SummaryWriter(str(where), purge_step=epoch, flush_secs=FLUSH_SECONDS)
                    writers[where] = stack.enter_context(writer)
                for name, value in row.items():
                    if name not in ("seed", "epoch"):
                        writers[where].add_scalar(name.replace(":", "/"), value, epoch)

        yield report
