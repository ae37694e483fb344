"""Download the original files of a published data set: mirrors in order, SHA-256 checked, all or nothing."""

import contextlib
import pathlib
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import BinaryIO

from ssm.data.archive import read_archive
from ssm.data.errors import CorruptFileError, DataError, DownloadError
from ssm.data.files import publish
from ssm.data.folder import is_published
from ssm.data.formats import read_bytes
from ssm.data.published import Published

CONNECT_SECONDS = 5.0  # per attempt; after which the next mirror is tried
READ_SECONDS = 30.0  # longest silence within a transfer


def download(spec: Published, folder: pathlib.Path, *, seconds: float | None = None) -> None:
    """Put the files of `spec` in `folder`, all verified, or none.

    `seconds` is a hard limit on the whole (name lookup, connecting, transfers, unpacking); None leaves only the
    limits on connecting and on silence. A progress bar is shown on stderr if that is a terminal.
    Raises `DownloadError` naming every mirror and what failed; if no mirror had the published contents and one
    served others, its `WrongHashError` (or other `DataError`). No files remain after an error.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = pathlib.Path(tempfile.mkdtemp(prefix=".partial-", dir=folder))
    except OSError as error:
        raise DownloadError(
            f"{folder}: can't keep downloads there ({error}). Set SSM_CACHE_DIR to a folder that you can write to.",
            short=f"{folder} can't be written",
        ) from None
    stop = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            _fetch_all(spec, temporary, stop, seconds)
        except BaseException as error:  # re-raised in the caller's thread below
            errors.append(error)
        finally:
            if stop.is_set():  # the caller has given up
                shutil.rmtree(temporary, ignore_errors=True)

    # A thread, since neither a name lookup nor a slow transfer can be interrupted from within.
    worker = threading.Thread(target=work, name=f"download {spec.name}", daemon=True)
    try:
        worker.start()
        worker.join(seconds)
        if worker.is_alive():
            raise DownloadError(
                f"The download of {spec.name} was not finished within {seconds:g} s.",
                short=f"its download takes more than {seconds:g} s",
            )
        if errors:
            raise errors[0]
        publish(temporary, folder)
    finally:
        stop.set()
        shutil.rmtree(temporary, ignore_errors=True)
        _remove_if_empty(folder)


def _fetch_all(spec: Published, folder: pathlib.Path, stop: threading.Event, seconds: float | None) -> None:
    connect = CONNECT_SECONDS if seconds is None else min(CONNECT_SECONDS, seconds / 3)
    mirrors = list(spec.mirrors)
    for wanted in [spec.archive] if spec.archive else [f"{name}.gz" for name in spec.files]:
        _fetch(spec, wanted, mirrors, folder, stop, connect)


def _fetch(
    spec: Published,
    wanted: str,
    mirrors: list[str],
    folder: pathlib.Path,
    stop: threading.Event,
    connect: float,
) -> None:
    """Get `wanted` from the first of `mirrors` whose copy is right; that mirror then moves to the front of the list."""
    failures: list[str] = []
    last: DataError | None = None
    for mirror in list(mirrors):
        path = folder / wanted
        try:
            _transfer(mirror + wanted, path, stop, connect)
        except Exception as error:  # requests has many kinds, and pooch may add its own
            if stop.is_set():
                raise
            failures.append(f"{mirror}{wanted}: {_reason(error)}")
            continue
        try:
            if spec.archive:
                _unpack(spec, path, folder)
                path.unlink()
            else:
                name = wanted.removesuffix(".gz")
                is_published(spec, name, read_bytes(path), pathlib.Path(wanted), required=True)
        except DataError as error:
            last = type(error)(f"downloaded from {mirror}: {error}")
            failures.append(f"{mirror}{wanted}: {error}")
            continue
        mirrors.sort(key=lambda other: other != mirror)
        return
    if last is not None:
        raise last
    raise DownloadError(f"It could not be downloaded: {'; '.join(failures)}.", short="no mirror can be reached")


def _transfer(url: str, path: pathlib.Path, stop: threading.Event, connect: float) -> None:
    from pooch import HTTPDownloader  # imported late: only a download needs it, and it takes time

    with open(path, "wb") as file, contextlib.ExitStack() as responses:

        def close_later(response, **_) -> None:  # pooch leaves the response of an error open
            responses.callback(response.close)

        get: Callable = HTTPDownloader(
            progressbar=_show_progress(),
            chunk_size=1 << 16,
            timeout=(connect, READ_SECONDS),
            hooks={"response": close_later},
        )
        get(url, _Stoppable(file, stop), None)


class _Stoppable:
    """A binary file whose `write` fails once `stop` is set."""

    def __init__(self, file: BinaryIO, stop: threading.Event) -> None:
        self._file, self._stop = file, stop

    def write(self, data: bytes) -> int:
        if self._stop.is_set():
            raise TimeoutError("stopped")
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _unpack(spec: Published, archive: pathlib.Path, folder: pathlib.Path) -> None:
    """Write the wanted files of an archive into `folder`, each checked."""
    limits = {name: file.size for name, file in spec.files.items()}
    contents = read_archive(archive, limits, of=spec.name, called=archive.name)
    for name, file in spec.files.items():
        if name not in contents:
            raise CorruptFileError(f"{archive.name}: {name}: no such file, expected {file.size:,} bytes")
        is_published(spec, name, contents[name], pathlib.Path(name), required=True)
        (folder / name).write_bytes(contents[name])


def _show_progress() -> bool:
    try:
        import tqdm  # noqa: F401  (pooch draws its bar with it)
    except ImportError:
        return False
    return sys.stderr.isatty()


def _reason(error: Exception) -> str:
    """A few readable words instead of the network stack's nested messages."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "can't connect"
    return f"{type(error).__name__}: {str(error)[:100]}".replace("\n", " ")


def _remove_if_empty(folder: pathlib.Path) -> None:
    with contextlib.suppress(OSError):  # raised if it holds files
        folder.rmdir()
