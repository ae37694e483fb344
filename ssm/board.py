"""A run's course as TensorBoard's event files, one curve for each seed."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ssm.progress import Report
from ssm.train import Progress

FOLDER = "tensorboard"
FLUSH_SECONDS = 10  # what a crash may lose here; the journal loses nothing


@contextmanager
def board(folder: Path) -> Iterator[Report]:
    """Give a report that writes every seed's row into `folder/tensorboard/seed-0003`, for `tensorboard --logdir`.

    Epochs that come again after a resume take the place of those written before.
    """
    from tensorboardX import SummaryWriter  # takes a second to import, and is asked for seldom

    with ExitStack() as stack:
        writers: dict[int, SummaryWriter] = {}

        def report(told: Progress) -> None:
            for row in told.rows:
                seed, epoch = int(row["seed"]), int(row["epoch"])
                if seed not in writers:
                    where = str(folder / FOLDER / f"seed-{seed:04d}")
                    writers[seed] = stack.enter_context(
                        SummaryWriter(where, purge_step=epoch, flush_secs=FLUSH_SECONDS)
                    )
                for name, value in row.items():
                    if name not in ("seed", "epoch"):
                        writers[seed].add_scalar(name.replace(":", "/"), value, epoch)

        yield report
