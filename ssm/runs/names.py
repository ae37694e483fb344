"""What a run is called, and which folder is its own: by what its configuration means, not by how it is written.

A name is made of the settings that are not neutral (`ssm.recipes.presets.NEUTRAL`), so that an option that is added to
the program renames no run.  Earlier versions made names from all settings they had; such folders keep their names.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ssm.errors import LeftOut, UserError
from ssm.files import plain, read_json
from ssm.recipes.presets import named_settings

_FIRST = ("model", "method", "init")
_DIGITS = 10


def config_hash(config: Mapping[str, Any]) -> str:
    """Return ten hex digits of the SHA-256 of a configuration's canonical JSON, whatever its keys' order.

    Settings at their neutral value are left out.
    """
    canonical = json.dumps(plain(named_settings(config)), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:_DIGITS]


def run_name(config: Mapping[str, Any]) -> str:
    """Return the run's folder name, MODEL-METHOD-INIT-HASH, from a configuration without seeds and paths."""
    return f"{_prefix(config)}-{config_hash(config)}"


def member_key(config: Mapping[str, Any], seed: int) -> str:
    """Return the key of one seed of one configuration, HASH/SEED."""
    return f"{config_hash(config)}/{seed}"


def run_folder(root: str | os.PathLike[str], config: Mapping[str, Any]) -> Path:
    """Return the folder under `root` of a configuration's run, which need not be there.

    It is the one named by `run_name`; if there is none, but a run of the same meaning that an earlier version named, it
    is that one.  One whose config.json is damaged is left out, with a warning (LeftOut).
    """
    own = Path(root) / run_name(config)
    if (own / "config.json").exists():
        return own
    for folder in sorted(Path(root).glob(f"{_prefix(config)}-{'[0-9a-f]' * _DIGITS}")):
        try:
            path = folder / "config.json"
            if path.exists() and not differences(read_config(path), config):
                return folder
        except (UserError, OSError) as error:
            warnings.warn(f"{folder} is left out, though it may be this run's: {error}", LeftOut, stacklevel=2)
    return own


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the names of the settings in which two configurations do not mean the same, in alphabetical order."""
    one, other = named_settings(one), named_settings(other)
    names = sorted({*one, *other})
    return [name for name in names if name not in one or name not in other or one[name] != other[name]]


def understood(config: Mapping[str, Any], known: Collection[str], name: str) -> dict[str, Any]:
    """Return a configuration without a later version's settings, if they were neutral; as it is, if they were not.

    They were neutral if the run's folder name is made without them.
    """
    rest = {key: value for key, value in config.items() if key in known}
    neutral = all(key in rest for key in _FIRST) and run_name(rest) == name
    return rest if neutral else dict(config)


def read_config(path: Path) -> dict[str, Any]:
    """Read a run's config.json.

    Raises:
        UserError: naming the file, if it is missing or damaged.
    """
    config = read_json(path)
    if not isinstance(config, dict):
        raise UserError(f"{path} is damaged: not the configuration of a run")
    return config


def _prefix(config: Mapping[str, Any]) -> str:
    # Of a net of the user's own, package.module:Name, the name.
    return "-".join(str(config[name]).rpartition(":")[2] for name in _FIRST)
