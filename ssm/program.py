"""What every program under experiments/ does at its start and at its end."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tyro

from ssm.errors import UserError


def run_program(main: Callable[[Any], None], options: type, *, description: str | None = None) -> None:
    """Read a dataclass of options from the command line and call `main` with it.

    A UserError is one message on stderr and exit status 2; an interrupt says so and exits with 130.
    """
    name = Path(sys.argv[0]).name
    try:
        main(tyro.cli(options, description=description))
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"{name}: stopped; what was saved stands, and the same command does the rest", file=sys.stderr)
        sys.exit(130)
