"""Paths in nested parameter trees: as names, and patterns of them."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

Path = tuple[str, ...]


def path_name(path: Sequence[str]) -> str:
    """Return a path as a name, `Dense_0/kernel`; a slash inside one of its parts is written %2F, and % is %25."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in path)


def name_path(name: str) -> Path:
    """Return the path of a name that `path_name` made."""
    return tuple(part.replace("%2F", "/").replace("%25", "%") for part in name.split("/"))


def matches(pattern: str, *names: str) -> bool:
    """Return whether a pattern matches one of some names, as in `fnmatch`, where * matches slashes, too."""
    return any(fnmatchcase(name, pattern) for name in names)
