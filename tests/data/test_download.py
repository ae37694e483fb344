import dataclasses
import tarfile
import time

import pytest

from ssm.data import CorruptFileError, DownloadError, WrongHashError
from ssm.data.download import download
from ssm.data.folder import read_folder
from ssm.data.published import PUBLISHED

DEAD = "http://127.0.0.1:9/"  # the discard port: nothing listens


@pytest.fixture
def mnist(helpers, server):
    """A tiny MNIST that lies on the local server under good/."""
    helpers.write(server.folder / "good", helpers.tiny_idx(), packed=True)
    return helpers.published_as(PUBLISHED["mnist"], helpers.tiny_idx(), (f"{server.url}good/",))


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) if folder.exists() else []


def test_gets_all_files(mnist, tmp_path):
    download(mnist, tmp_path / "kept")
    assert tree(tmp_path / "kept") == sorted(f"{name}.gz" for name in mnist.files)
    assert read_folder(mnist, tmp_path / "kept", published_only=True).train_labels.tolist() == [3, 0, 9]


def test_a_dead_mirror_is_passed_over_once(mnist, server, tmp_path, monkeypatch):
    (server.folder / "empty").mkdir()
    spec = dataclasses.replace(mnist, mirrors=(DEAD, f"{server.url}empty/", f"{server.url}good/"))
    download(spec, tmp_path / "kept")
    assert len(tree(tmp_path / "kept")) == 4
    assert [path for path in server.asked if path.startswith("/empty/")] == ["/empty/train-images-idx3-ubyte.gz"]


def test_no_mirror_answers(mnist, server, tmp_path):
    spec = dataclasses.replace(mnist, mirrors=(DEAD, f"{server.url}nowhere/"))
    with pytest.raises(DownloadError) as error:
        download(spec, tmp_path / "kept")
    assert f"{DEAD}train-images-idx3-ubyte.gz: can't connect" in str(error.value)
    assert "nowhere/train-images-idx3-ubyte.gz: HTTP status 404" in str(error.value)
    assert not (tmp_path / "kept").exists()


def test_wrong_hash_leaves_nothing(mnist, server, helpers, tmp_path):
    files = helpers.tiny_idx()
    files["t10k-labels-idx1-ubyte"] = helpers.idx_bytes([1, 3])  # the last file: the first three are fine
    helpers.write(server.folder / "good", files, packed=True)
    with pytest.raises(WrongHashError) as error:
        download(mnist, tmp_path / "kept")
    assert f"downloaded from {server.url}good/: t10k-labels-idx1-ubyte.gz: SHA-256" in str(error.value)
    assert mnist.files["t10k-labels-idx1-ubyte"].sha256 in str(error.value)
    assert not (tmp_path / "kept").exists()


def test_wrong_contents_then_a_good_mirror(mnist, server, tmp_path):
    login = server.folder / "login"
    login.mkdir()
    for name in mnist.files:
        (login / f"{name}.gz").write_text("<html>Welcome to our hotel</html>")
    download(dataclasses.replace(mnist, mirrors=(f"{server.url}login/", *mnist.mirrors)), tmp_path / "kept")
    assert len(tree(tmp_path / "kept")) == 4


def test_earlier_files_stay(mnist, tmp_path, server):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "mine.txt").write_text("mine")
    with pytest.raises(DownloadError):
        download(dataclasses.replace(mnist, mirrors=(DEAD,)), kept)
    assert tree(kept) == ["mine.txt"]


def test_the_time_limit_is_hard(mnist, server, tmp_path):
    (server.folder / "silent").mkdir()
    spec = dataclasses.replace(mnist, mirrors=(f"{server.url}silent/",))
    start = time.monotonic()
    with pytest.raises(DownloadError, match=r"not finished within 0\.3 s"):
        download(spec, tmp_path / "kept", seconds=0.3)
    assert time.monotonic() - start < 2
    assert not (tmp_path / "kept").exists()
    server.finish()  # the abandoned thread gets its answer now, and must not bring the folder back
    time.sleep(0.2)
    assert not (tmp_path / "kept").exists()


def test_a_folder_that_cannot_be_written(mnist, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DownloadError, match=r"can't keep downloads there.*SSM_CACHE_DIR"):
        download(mnist, tmp_path / "file" / "kept")


def cifar_files():
    spec = PUBLISHED["cifar10"]
    return {name: bytes([label]) * 3073 for label, name in enumerate(spec.files)}


@pytest.fixture
def cifar(helpers, server):
    return helpers.published_as(PUBLISHED["cifar10"], cifar_files(), (f"{server.url}good/",))


def test_unpacks_an_archive(cifar, server, helpers, tmp_path):
    helpers.pack(server.folder / "good" / "cifar-10-binary.tar.gz", cifar_files())
    download(cifar, tmp_path / "kept")
    assert tree(tmp_path / "kept") == sorted(cifar.files)  # the archive itself isn't kept
    assert read_folder(cifar, tmp_path / "kept", published_only=True).train_labels.tolist() == [0, 1, 2, 3, 4]


def test_an_archive_cannot_write_elsewhere(cifar, server, helpers, tmp_path):
    link = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "victim")
    helpers.pack(server.folder / "good" / "cifar-10-binary.tar.gz", cifar_files(), prefix="../../../", extra=[link])
    download(cifar, tmp_path / "kept")
    assert tree(tmp_path / "kept") == sorted(cifar.files)
    assert not (tmp_path / "victim").exists() and not (tmp_path / "data_batch_1.bin").exists()


@pytest.mark.parametrize("damage", ["absent", "longer", "cut", "other bytes"])
def test_damaged_archives(cifar, server, helpers, tmp_path, damage):
    files = cifar_files()
    path = server.folder / "good" / "cifar-10-binary.tar.gz"
    if damage == "absent":
        del files["test_batch.bin"]
    elif damage == "longer":
        files["test_batch.bin"] += b"\0"
    elif damage == "other bytes":
        files["test_batch.bin"] = bytes([7]) * 3073
    helpers.pack(path, files)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-30])
    kind, message = {
        "absent": (CorruptFileError, "test_batch.bin: no such file, expected 3,073 bytes"),
        "longer": (CorruptFileError, "test_batch.bin: 3,074 bytes, expected 3,073 bytes"),
        "other bytes": (WrongHashError, "test_batch.bin: SHA-256"),
        "cut": (CorruptFileError, "can't be unpacked .* expected an intact archive of cifar10"),
    }[damage]
    with pytest.raises(kind, match=message):
        download(cifar, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
