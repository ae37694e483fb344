"""What every program under experiments/ does at its start and at its end."""

import shlex
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tyro

from ssm.errors import UserError
from ssm.runs.signals import Interrupted


def run_program(main: Callable[[Any], None], options: type, *, description: str | None = None) -> None:
    """Read a dataclass of options from the command line and call `main` with it.

    A UserError is one message on stderr and exit status 2; a signal that ends training, one and 128 + its number.
    """
    name = Path(sys.argv[0]).name
    warnings.formatwarning = partial(_warning, name)
    try:
        main(tyro.cli(options, description=description))
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)
    except Interrupted as stopped:
        print(f"{name}: {stopped}\nTo resume: {shlex.join(command())}", file=sys.stderr)
        sys.exit(128 + stopped.number)
    except KeyboardInterrupt:
        print(f"{name}: stopped; what was saved stands, and the same command resumes", file=sys.stderr)
        sys.exit(130)


def _warning(name: str, message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> str:
    kind = "" if category is UserWarning else f"{category.__name__}: "
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
