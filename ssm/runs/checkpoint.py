"""Groups of seeds in the middle of their training, in files that are whole, checked, and readable on any backend.

    RUN/checkpoints/5f0c8a21e07b-00012.ckpt    digest of the group's members, epochs done

A file is one line of ASCII, `ssm-checkpoint VERSION SHA256 BYTES`, and then an npz without pickles of that many bytes
and that hash: host arrays [seeds, ...] by their path in the state, the hidden units that are still trained, if some are
left out, as `kept:LAYER`, and `about`, the rest as JSON.  Frozen weights are
not in it: they are made again from the seed, and their hash is compared.
"""

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from ssm.errors import UserError
from ssm.files import plain, write_atomic
from ssm.plateau import PlateauState
from ssm.training.snapshot import Failure, Snapshot

VERSION = 2
KEPT = 2  # checkpoints of a group: the newest may turn out to be damaged
FOLDER = "checkpoints"
DAMAGED = ".damaged"
_ABOUT = "about"
_KEPT = "kept:"
_NAME = re.compile(r"(?P<group>[0-9a-f]{12})-(?P<epoch>\d{5,})\.ckpt")
_DAMAGE = (KeyError, TypeError, AttributeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


class _OtherVersion(Exception):
    """The file may be whole, but another version of this program wrote it."""


def save(folder: Path, snapshot: Snapshot, identity: str) -> Path:
    """Write a snapshot into a folder, and remove those of the same members but the last two; return the new file.

    `identity` is the fingerprint of the data, which members' keys don't contain; `newest` compares it.
    Raises OSError where the file cannot be written: those before it then stand.
    """
    about = {
        "identity": identity,
        "members": snapshot.members,
        "epoch": snapshot.epoch,
        "frozen": snapshot.frozen,
        "plateaus": snapshot.plateaus,
        "failures": snapshot.failures,
        "history": snapshot.history,
    }
    kept = {f"{_KEPT}{layer}": flags for layer, flags in snapshot.kept.items()}
    arrays = {**snapshot.arrays, **kept, _ABOUT: np.frombuffer(json.dumps(plain(about)).encode(), np.uint8)}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    payload = buffer.getbuffer()
    header = f"ssm-checkpoint {VERSION} {hashlib.sha256(payload).hexdigest()} {len(payload)}\n"
    path = folder / f"{_group(snapshot.members)}-{snapshot.epoch:05d}.ckpt"
    write_atomic(path, header, payload)
    # By epoch, never by the files' times: clocks jump.  Later ones are another version's, which are not ours to remove.
    files = _by_group(folder)[_group(snapshot.members)]
    for old in files[files.index(path) :][KEPT:]:
        old.unlink(missing_ok=True)
    return path


def load(path: Path) -> tuple[Snapshot, str]:
    """Return a file's snapshot and identity.

    Raises:
        ValueError: saying what is wrong, if the file is damaged.
        UserError: if another version of the format wrote it.
        OSError: if it can't be read.
    """
    try:
        return _read(path.read_bytes())
    except _OtherVersion as error:
        raise UserError(f"{path} is of version {error} of the format; this program reads version {VERSION}") from None
    except _DAMAGE as error:
        raise ValueError(repr(error)) from error


def _read(data: bytes) -> tuple[Snapshot, str]:
    line, newline, payload = data.partition(b"\n")
    match = re.fullmatch(rb"ssm-checkpoint (\d{1,9}) ([0-9a-f]{64}) (\d{1,18})", line)
    if not newline or match is None:
        raise ValueError("it does not begin as a checkpoint does")
    if int(match[1]) != VERSION:
        raise _OtherVersion(int(match[1]))
    if len(payload) != int(match[3]):
        raise ValueError(f"{len(payload)} bytes instead of {int(match[3])}")
    if hashlib.sha256(payload).hexdigest() != match[2].decode():
        raise ValueError("its content does not have its checksum")
    with np.load(io.BytesIO(payload), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(arrays.pop(_ABOUT).tobytes())
    kept = {name: arrays.pop(name) for name in list(arrays) if name.startswith(_KEPT)}
    snapshot = Snapshot(
        members=tuple(about["members"]),
        epoch=about["epoch"],
        arrays=arrays,
        frozen=tuple(about["frozen"]),
        plateaus=tuple(PlateauState(*state) for state in about["plateaus"]),
        failures={int(place): Failure(*why) for place, why in about["failures"].items()},
        history=about["history"],
        kept={name.removeprefix(_KEPT): flags for name, flags in kept.items()},
    )
    return snapshot, about["identity"]


def newest(folder: Path, identity: str, log: Callable[[str], None]) -> list[Snapshot]:
    """Return the newest whole snapshot of every group in a folder; `log` is given a line for each file skipped.

    A damaged file is renamed, so that it takes no whole one's place among the last two.
    Raises UserError where a group has files, but only such as another version of this program wrote, or of another
    identity: they may be whole, and starting over would lose them.
    """
    found: list[Snapshot] = []
    for files in _by_group(folder).values():
        refused: UserError | None = None
        for path in files:
            try:
                snapshot, other = load(path)
            except UserError as error:
                refused = refused or error
                log(f"warning: {error}; it is skipped")
                continue
            except OSError as error:
                log(f"warning: {path} cannot be read ({error.strerror or error}); it is skipped")
                continue
            except ValueError as error:
                log(f"warning: {path} is damaged ({error}); it is skipped")
                with suppress(OSError):
                    path.rename(path.with_suffix(DAMAGED))
                continue
            if other != identity:
                refused = UserError(f"{path} was trained on other data of the same name")
                log(f"warning: {refused}; it is skipped")
                continue
            found.append(snapshot)
            break
        else:
            if refused:
                raise UserError(
                    f"{refused}, and there is none that fits: use what wrote it, or remove {folder} to "
                    "start these seeds over (--fresh removes the finished ones, too)"
                )
    return found


def furthest(snapshots: Sequence[Snapshot]) -> dict[str, Snapshot]:
    """Return for each member the snapshot that knows it with the most epochs: groups may have been halved since."""
    best: dict[str, Snapshot] = {}
    for snapshot in sorted(snapshots, key=lambda one: one.epoch):
        best |= dict.fromkeys(snapshot.members, snapshot)
    return best


def remove_finished(folder: Path, finished: Collection[str]) -> None:
    """Remove the files of groups all of whose members are finished, as far as they can be read and removed."""
    for files in _by_group(folder).values():
        for path in files:
            with suppress(ValueError, OSError, UserError):
                if set(finished).issuperset(load(path)[0].members):
                    path.unlink()
    if not _by_group(folder):
        for path in folder.glob(f"*{DAMAGED}"):
            path.unlink(missing_ok=True)


def _group(members: Sequence[str]) -> str:
    return hashlib.sha256(",".join(members).encode()).hexdigest()[:12]


def _by_group(folder: Path) -> dict[str, list[Path]]:
    """Return a folder's checkpoint files by group, newest first."""
    found: dict[str, list[tuple[int, Path]]] = {}
    for path in folder.glob("*.ckpt") if folder.is_dir() else ():
        if match := _NAME.fullmatch(path.name):
            found.setdefault(match["group"], []).append((int(match["epoch"]), path))
    return {group: [path for _, path in sorted(files, reverse=True)] for group, files in sorted(found.items())}
