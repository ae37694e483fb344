"""Objects of the user's own by name: `package.module:Name`."""

import importlib
import sys
from pathlib import Path
from typing import Any

from ssm.errors import UserError


def load_object(text: str, option: str) -> Any:
    """Return the object that `package.module:Name` names; modules are looked for in the working folder, too.

    Raises:
        UserError: naming the option, if there is no such module or name, or the module cannot be imported.
    """
    module_name, _, name = text.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever the user's module raises
        raise UserError(
            f"--{option}={text}: {module_name} cannot be imported from here ({type(error).__name__}: {error})."
        ) from error
    if not hasattr(module, name):
        raise UserError(f"--{option}={text}: {module_name} has no {name!r}.")
    return getattr(module, name)
