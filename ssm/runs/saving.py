"""When a group in training is saved: every so many epochs or minutes, and before a signal ends the run."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass(kw_only=True)
class Keeper:
    """What `train_members` calls after an epoch: it saves what is due, and ends training after a signal.

    A failure to save is logged, and training continues: earlier checkpoints stand, at first that of epoch `saved` if
    there is one.  It raises Interrupted.
    """

    folder: Path
    identity: str
    saving: Saving
    interrupts: Interrupts
    journal: Journal
    log: Callable[[str], None]
    saved: int | None = None
    last: float = field(default_factory=lambda: time.monotonic())  # not the clock on the wall, which may be set

    def due(self, epoch: int) -> bool:
        """Return whether there is something to do after so many epochs."""
        by_epochs = self.saving.every is not None and epoch % self.saving.every == 0
        by_time = self.saving.minutes > 0 and time.monotonic() - self.last >= 60 * self.saving.minutes
        return self.interrupts.caught is not None or by_epochs or by_time

    def __call__(self, epoch: int, snapshot: Callable[[], Snapshot]) -> None:
        """Save what is due after so many epochs; raises Interrupted after a signal."""
        if not self.due(epoch):
            return
        caught = self.interrupts.caught
        self.last = time.monotonic()
        try:
            path = checkpoint.save(self.folder, snapshot(), self.identity)
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or str(error) or "no memory"
            self.log(f"warning: no checkpoint of epoch {epoch}: {self.folder}: {why}; training continues")
        else:
            self.saved = epoch
            self.journal("checkpoint", epoch=epoch, file=path.name, seconds=time.monotonic() - self.last)
        if caught is not None:
            name = signal.Signals(caught).name
            self.journal("interrupted", epoch=epoch, signal=name)
            before = "there is no checkpoint" if self.saved is None else f"the last checkpoint is that of epoch {self.saved}"
            at = f"saved after epoch {epoch}" if self.saved == epoch else before
            raise Interrupted(caught, f"stopped by {name}, {at}; the same command resumes from it")
