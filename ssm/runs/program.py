"""What every program under experiments/ does at its start and at its end."""

import errno
import shlex
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import tyro

from ssm.errors import LeftOut, UserError
from ssm.runs.memory import HELP, brief, out_of_memory
from ssm.runs.output import Unwritable, keep_standard_streams
from ssm.runs.signals import Interrupted, ending

REPORT = "Unless this comes from code of your own, it is a bug of ours: please report it with the lines above."
STANDS = "what was saved stands, and the same command goes on from it"
SIGPIPE = 13  # which Windows has no name for
_ADVICE = {
    errno.EACCES: "see to the right to it, or name another place",
    errno.EPERM: "see to the right to it, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.ENOSPC: "make room, or name a place on another disk",
    errno.EDQUOT: "make room, or name a place on another disk",
    errno.ENOENT: "see that it is there",
    errno.EISDIR: "name a file, not a folder",
    errno.ENOTDIR: "part of its path is a file, not a folder",
    errno.EEXIST: "move it away, or name another place",
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.EIO: "see to the disk",
}
"""What to do about errors of the operating system; others are told as it words them."""


def run_program(
    main: Callable[[Any], None], options: type, *, description: str | None = None, trains: bool = False
) -> None:
    """Read a dataclass of options from the command line and call `main` with it.

    What is not our bug is one message on stderr and an exit status: 2 after a UserError, an error of the operating
    system about a file, or short memory; 128 + its number after a signal.  Any other exception has its traceback, and
    status 1.  Where output cannot be written, a program that `trains` goes on without; others end, with 141 and not a
    word where the reader of a pipe has gone.
    """
    name = Path(sys.argv[0]).name
    keep_standard_streams(lasting=trains)
    warnings.formatwarning = partial(_warning, name)
    try:
        with ending(STANDS, ctrl_c=trains):
            try:
                main(tyro.cli(options, description=description))
            except SystemExit:  # of --help, say
                sys.stdout.flush()
                raise
            sys.stdout.flush()
    except Interrupted as stopped:
        print(f"{name}: {stopped}\nTo resume: {shlex.join(command())}", file=sys.stderr)
        sys.exit(128 + stopped.number)
    except BaseException as error:
        with suppress(Unwritable):
            sys.stdout.flush()
        found = explained(error)
        if found is None:
            if isinstance(error, Exception):
                error.add_note(REPORT)
            raise
        status, message = found
        if message:
            print(f"{name}: {message}", file=sys.stderr)
        sys.exit(status)


def explained(error: BaseException) -> tuple[int, str] | None:
    """Return the exit status and the message for an error that is the user's or the machine's; None for all others."""
    if isinstance(error, UserError):
        return 2, str(error)
    if isinstance(error, KeyboardInterrupt):
        return 130, f"stopped; {STANDS}"
    if isinstance(error, Unwritable):
        if error.error.errno in (errno.EPIPE, errno.EINVAL):  # the second is Windows's
            return 128 + SIGPIPE, ""
        return 2, f"standard output cannot be written: {error}"
    if out_of_memory(error):
        return 2, f"memory does not suffice ({brief(error)}); {HELP}"
    if isinstance(error, OSError) and (error.filename is not None or error.errno in _ADVICE):
        where = "" if error.filename is None else f"{error.filename}: "
        advice = _ADVICE.get(error.errno or 0)
        return 2, f"{where}{error.strerror or error}" + (f"; {advice}" if advice else "")
    return None


def _warning(name: str, message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> str:
    kind = "" if issubclass(category, UserWarning) else f"{category.__name__}: "
    return f"{name}: warning: {kind}{message}\n"


def command(*options: str) -> list[str]:
    """Return this process's command line as a user would give it again.

    Without --fresh, which must not be repeated, and without `options` and their values, whichever way they are written.
    """
    kept = ["python"]
    value = False  # whether the next argument is the value of an option that was left out
    for argument in sys.argv:
        name, sign, _ = argument.partition("=")
        if not value and name not in ("--fresh", *options):
            kept.append(argument)
        value = not value and name in options and not sign
    return kept
