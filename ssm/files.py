"""Files written atomically, whole or not at all, so that a crash leaves readable ones."""

import json
import math
import os
import secrets
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssm.errors import UserError

# What zipfile and NumPy raise for bytes that they did not write, found by flipping every one of a file's.
DAMAGE = (OSError, EOFError, ValueError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


def plain(value: object) -> Any:
    """Convert a value to plain JSON types.

    Mappings, sequences, sets (sorted), paths and anything with `tolist` (numpy scalars and arrays) become
    dicts, lists, strings and numbers; a float that is not finite becomes None, since JSON cannot represent it.

    Raises:
        TypeError: for a value of any other type.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        return plain(tolist())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def write_atomic(path: str | os.PathLike[str], *parts: bytes | memoryview | str) -> None:
    """Write a file atomically: at any moment its name refers to the whole old or the whole new content.

    The parts come one after another; text is written as UTF-8. The folder is created if necessary.

    Raises:
        OSError: if it cannot be written; the old content is then kept, and no temporary file is left.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, since only a rename within one file system is atomic.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            for part in parts:
                file.write(part.encode() if isinstance(part, str) else part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # an interrupt leaves no temporary file either
        temporary.unlink(missing_ok=True)
        raise


def save(path: str | os.PathLike[str], *parts: bytes | memoryview | str) -> None:
    """Write a file that the user named, as `write_atomic` does.

    Raises:
        UserError: naming the file, if it cannot be written.
    """
    try:
        write_atomic(path, *parts)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from error


def write_json(path: str | os.PathLike[str], value: object) -> None:
    """Write a value as indented JSON, atomically, keys in their order, numbers that are not finite as null.

    Raises:
        OSError: see `write_atomic`. TypeError: see `plain`.
    """
    write_atomic(path, json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file.

    Raises:
        UserError: naming the file, if it is missing, unreadable or damaged.
    """
    try:
        return json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # JSONDecodeError and UnicodeDecodeError are ValueErrors
        raise UserError(f"{path} is damaged: not valid JSON ({error})") from error
