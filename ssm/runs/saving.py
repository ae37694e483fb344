"""When a group in training is saved: every so many epochs or minutes, and before a signal ends the run."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ssm.runs import checkpoint
from ssm.runs.checkpoint import Snapshot
from ssm.errors import UserError
from ssm.runs.signals import Interrupted, Interrupts
from ssm.runs.journal import Journal


@dataclass(frozen=True, kw_only=True)
class Saving:
    """How often: after every `every` epochs (None: not by epochs), and `minutes` after the last time (0: not by time).

    Raises UserError for values below these.
    """

    every: int | None = None
    minutes: float = 5.0

    def __post_init__(self) -> None:
        if self.every is not None and self.every < 1:
            raise UserError(f"--checkpoint-every must be at least 1; got {self.every}.")
        if not self.minutes >= 0:
            raise UserError(f"--checkpoint-minutes must be 0 (never) or more; got {self.minutes}.")


def keeper(
    folder: Path,
    identity: str,
    saving: Saving,
    interrupts: Interrupts,
    journal: Journal,
    log: Callable[[str], None],
    saved: int | None = None,
) -> Callable[[int, Callable[[], Snapshot]], None]:
    """Return what `train_members` calls after an epoch: it saves what is due, and ends training after a signal.

    A failure to save is logged, and training continues: earlier checkpoints stand, at first that of epoch `saved` if
    there is one.  It raises Interrupted.
    """
    last = time.monotonic()  # not the clock on the wall, which may be set

    def after_epoch(epoch: int, snapshot: Callable[[], Snapshot]) -> None:
        nonlocal last, saved
        caught = interrupts.caught
        by_epochs = saving.every is not None and epoch % saving.every == 0
        by_time = saving.minutes > 0 and time.monotonic() - last >= 60 * saving.minutes
        if caught is None and not by_epochs and not by_time:
            return
        last = time.monotonic()
        try:
            path = checkpoint.save(folder, snapshot(), identity)
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or str(error) or "no memory"
            log(f"warning: no checkpoint of epoch {epoch}: {folder}: {why}; training continues")
        else:
            saved = epoch
            journal("checkpoint", epoch=epoch, file=path.name, seconds=time.monotonic() - last)
        if caught is not None:
            journal("interrupted", epoch=epoch, signal=signal.Signals(caught).name)
            before = "there is no checkpoint" if saved is None else f"the last checkpoint is that of epoch {saved}"
            at = f"saved after epoch {epoch}" if saved == epoch else before
            raise Interrupted(
                caught, f"stopped by {signal.Signals(caught).name}, {at}; the same command resumes from it"
            )

    return after_epoch
