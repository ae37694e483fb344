"""Files in an archive that nobody has unpacked: tar (gzipped or not) and zip."""

import pathlib
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import IO

from ssm.data.errors import CorruptFileError
from ssm.data.formats import GZIP


def read_archive(archive: pathlib.Path, sizes: Mapping[str, int], *, of: str, called: str = "") -> dict[str, bytes]:
    """Return the contents of an archive's files of certain names, in whatever folder they are; nothing is written.

    sizes: by name in lower case, the most bytes that a file may have.  of, called: the data set's and the archive's
    names in messages.
    Raises `CorruptFileError` for a damaged archive, or a larger file.
    """
    called = called or str(archive)
    found: dict[str, bytes] = {}
    with open(archive, "rb") as file:
        try:
            for name, size, contents in _files(file):
                if name not in sizes:
                    continue
                if size > sizes[name]:  # a bomb, say: it is not read
                    raise CorruptFileError(f"{called}: {name}: {size:,} bytes, expected {sizes[name]:,} bytes")
                found[name] = contents()
        # A password is a RuntimeError, an unknown compression a NotImplementedError.
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, zlib.error, RuntimeError) as error:
            raise CorruptFileError(
                f"{called}: can't be unpacked ({error}), expected an intact archive of {of}. Copy or download it again."
            ) from None
    return found


def has_any(archive: pathlib.Path, names: Mapping[str, int]) -> bool:
    """Return whether a zip archive has files of these names; True for a damaged one, of which reading says so."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return any(_base(name) in names for name in opened.namelist())
    except zipfile.BadZipFile:
        return True


def _files(file: IO[bytes]) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    """Yield the regular files' names without folders, in lower case, their sizes and what reads them, in order.

    No path, link or mode in the archive can do harm: nothing is extracted.
    """
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as opened:
            for info in opened.infolist():
                if not info.is_dir():
                    yield _base(info.filename), info.file_size, partial(opened.read, info)
        return
    file.seek(0)
    packed = file.read(len(GZIP)) == GZIP
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:gz" if packed else "r:") as tar:
        for member in tar:
            if member.isreg() and (contents := tar.extractfile(member)):
                yield _base(member.name), member.size, contents.read


def _base(name: str) -> str:
    return pathlib.PurePosixPath(name).name.lower()
