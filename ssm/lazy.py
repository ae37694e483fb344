"""Attributes of a package that are imported when they are first used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any


def attributes(package: str, homes: Mapping[str, str] = MappingProxyType({})) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: its submodules, and names that live elsewhere, by the module of each.

    So `import ssm` alone starts at once, and every name of the library can be written out after it.
    """

    def attribute(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        if not name.startswith("_") and find_spec(f"{package}.{name}"):
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute
