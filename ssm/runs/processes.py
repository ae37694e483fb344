"""Several processes that train parts of one run's seeds, on one machine or many, over a folder that all of them see.

Seeds need nothing of each other, so that no step communicates.  Process 0 opens the run's folder, says which seeds are
missing, and writes the summary; every other one writes parts that process 0 adds.  If one dies, JAX's coordination
service ends the others; their checkpoints stand, and the same command resumes.
"""

import hashlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import jax
import numpy as np

from ssm.errors import UserError
from ssm.runs.program import explained
from ssm.runs.signals import Interrupted

T = TypeVar("T")

HEARTBEAT_SECONDS = 20  # a process that is silent for so long is considered dead, and the others end
GRACE_SECONDS = 2.0
LEAVE_SECONDS = 600  # how long a process that was asked to stop waits for the others' running epochs


class Hosts(NamedTuple):
    """This process's number, and how many there are."""

    number: int = 0
    count: int = 1

    def share(self, members: Sequence[T]) -> list[T]:
        """Return this process's part of what is to be trained."""
        return list(members)[self.number :: self.count]


def join(coordinator: str | None = None, processes: int | None = None, process: int | None = None) -> None:
    """Join the other processes; call it before JAX computes anything.

    Without arguments JAX finds out from Slurm, Open MPI or Kubernetes; else `coordinator` is HOST:PORT of process 0,
    `processes` their number, and `process` this one's.
    Raises UserError if JAX can't find out, or the others don't come within five minutes.
    """
    # It would swallow SIGTERM, which has to save and end.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            coordinator,
            processes,
            process,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=LEAVE_SECONDS,
        )
    except (ValueError, TypeError, RuntimeError) as error:
        raise UserError(
            f"--distributed: {error}; under Slurm, Open MPI or Kubernetes it needs nothing more, elsewhere give "
            "--coordinator=HOST:PORT, --processes and --process, the same command but for the last on each machine"
        ) from error


def hosts() -> Hosts:
    """Return which process this one is; the only one without `join`."""
    return Hosts(jax.process_index(), jax.process_count())


@contextmanager
def together() -> Iterator[None]:
    """Leave with the others at the end, or once their running epochs are saved if this process was asked to stop.

    An error ends this process at once, as JAX would wait for the others, and the others within HEARTBEAT_SECONDS.
    Does nothing without `join`.
    """
    try:
        yield
    except Interrupted:
        _leave()
        raise
    except BaseException as error:
        if jax.process_count() == 1:
            raise
        status, message = explained(error) or (1, traceback.format_exc())
        print(message, file=sys.stderr, flush=True)
        if jax.process_index() == 0:
            time.sleep(GRACE_SECONDS)  # the others' own messages, which the end of process 0 would cut off
        os._exit(status)
    _leave()


def _leave() -> None:
    if jax.distributed.is_initialized():
        try:
            jax.distributed.shutdown()
        except RuntimeError as error:  # the others have not come in time
            print(f"warning: {error}", file=sys.stderr)


def agreed(hosts: Hosts, find: Callable[[], Sequence[int]], identity: str) -> list[int]:
    """Return the whole numbers that process 0 finds, in every process; where it raises UserError, all do.

    `identity` must be the same text in all of them, else UserError.
    """
    if hosts.count == 1:
        return list(find())
    from jax.experimental.multihost_utils import broadcast_one_to_all

    found, refused = [], None
    if hosts.number == 0:
        try:
            found = list(find())
        except UserError as error:
            refused = error
    # One after the other is waited for: collectives that overlap hang on a CPU.
    count = int(broadcast_one_to_all(np.int32(-1 if refused else len(found))))
    if refused:
        raise refused
    if count < 0:
        raise UserError("process 0 can't begin; its message says why")
    digest = np.frombuffer(hashlib.sha256(identity.encode()).digest(), np.uint32)
    if (np.asarray(broadcast_one_to_all(digest)) != digest).any():
        raise UserError(
            f"process {hosts.number} has other options or other data than process 0: here it is {identity}; give the "
            "same command to all of them, but for --process"
        )
    sent = np.asarray(found if hosts.number == 0 else [0] * count, np.uint32)
    return [int(number) for number in broadcast_one_to_all(sent)]
