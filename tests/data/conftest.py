"""Small literal data sets, and an environment without any data or network."""

import dataclasses
import gzip
import hashlib
import http.server
import io
import pathlib
import tarfile
import threading
import zipfile

import numpy as np
import pytest

from ssm.data import search
from ssm.data.published import PUBLISHED, File, Published

IDX_NAMES = tuple(PUBLISHED["mnist"].files)


def idx_bytes(array) -> bytes:
    """An IDX file, written by hand: magic number, sizes, values."""
    array = np.asarray(array, np.uint8)
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def tiny_idx() -> dict[str, bytes]:
    """Three training and two test images of 2 x 3 pixels."""
    arrays = (
        np.arange(18).reshape(3, 2, 3),
        [3, 0, 9],
        np.arange(100, 112).reshape(2, 2, 3),
        [1, 2],
    )
    return {name: idx_bytes(array) for name, array in zip(IDX_NAMES, arrays, strict=True)}


def write(folder: pathlib.Path, files: dict[str, bytes], *, packed: bool = False) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / name).write_bytes(data)
    return folder


def pack(path: pathlib.Path, files: dict[str, bytes], *, prefix="cifar-10-batches-bin/", extra=()) -> pathlib.Path:
    """Write a tar archive, gzipped if its name says so; `extra` are members without contents."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
        for member in extra:
            tar.addfile(member)
        for name, data in files.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def zipped(path: pathlib.Path, files: dict[str, bytes], *, packed: bool = False) -> pathlib.Path:
    """Write a zip archive, of gzipped files if `packed`."""
    with zipfile.ZipFile(path, "w") as made:
        for name, data in files.items():
            made.writestr(name, gzip.compress(data) if packed else data)
    return path


def published_as(spec: Published, files: dict[str, bytes], mirrors: tuple[str, ...] = ()) -> Published:
    """`spec` as if `files` were what its authors published at `mirrors`."""
    facts = {name: File(len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()}
    return dataclasses.replace(spec, files=facts, mirrors=mirrors)


@pytest.fixture(autouse=True)
def nothing_at_hand(tmp_path, monkeypatch):
    """No data in the environment's folders, the home folder, Debian's or the cache; no download."""
    for name in ("SSM_DATA_DIR", "TFDS_DATA_DIR", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SSM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SSM_OFFLINE", "1")
    monkeypatch.setattr(search, "DEBIAN", {"fashion_mnist": tmp_path / "debian"})


@pytest.fixture
def helpers():
    """The functions above, for test modules (which can't import a conftest by name)."""

    class Helpers:
        pass

    for function in (idx_bytes, tiny_idx, write, pack, zipped, published_as):
        setattr(Helpers, function.__name__, staticmethod(function))
    return Helpers


@pytest.fixture
def server(tmp_path):
    """A web server on the loopback: `url`, `folder` that it serves, `asked` (paths requested, in order)."""
    folder = tmp_path / "served"
    folder.mkdir()
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, directory=str(folder), **kwargs)

        def do_GET(self):
            asked.append(self.path)
            if self.path.startswith("/silent/"):
                finished.wait(20)
            super().do_GET()

        def log_message(self, *args):
            pass

    class Served:
        pass

    finished = threading.Event()
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    served = Served()
    served.url, served.folder, served.asked = f"http://127.0.0.1:{httpd.server_port}/", folder, asked
    served.finish = finished.set  # lets the silent requests go
    yield served
    finished.set()
    httpd.shutdown()
    thread.join()
    httpd.server_close()
