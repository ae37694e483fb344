"""`load`: where a data set is searched for, in which order, and what `auto` does when it is not available."""

import contextlib
import dataclasses
import os
import pathlib
import tempfile

from ssm.data.dataset import Dataset
from ssm.data.digits import load_mnist5k
from ssm.data.download import download
from ssm.data.errors import DataError, DownloadError, MissingFilesError, UnreadableError
from ssm.data.folder import read_folder
from ssm.data.idx import PREFIX as IDX
from ssm.data.idx import load_idx
from ssm.data.locate import find_files, find_folder, missing_files
from ssm.data.npz import PREFIX as NPZ
from ssm.data.npz import load_npz
from ssm.data.prepared import find_prepared, folders, missing_prepared, read_prepared
from ssm.data.published import PUBLISHED, Published

NAMES = (*PUBLISHED, "mnist5k", "auto")
"""The names that `load` takes, besides `tfds:NAME`, `npz:FILE` and `idx:DIR`."""

AUTO_SECONDS = 15.0
DEBIAN = {"fashion_mnist": pathlib.Path("/usr/share/datasets/fashion-mnist")}  # package dataset-fashion-mnist


def load(name: str, *, data_dir: str | os.PathLike[str] | None = None, preferred: str = "mnist") -> Dataset:
    """The data set `name`: mnist, fashion_mnist, cifar10, cifar100, mnist5k, tfds:NAME, npz:FILE, idx:DIR or auto.

    The files of npz: and idx: are one's own (`ssm.data.npz`, `ssm.data.idx`); only tfds: is searched for in `data_dir`.
    A published set is searched for in this order:

    1. `data_dir`, else the folder that the environment's SSM_DATA_DIR names: the authors' files (IDX, gzipped
       or raw; CIFAR's binary version) there or in its usual subfolder, or the archive that they come in. A given
       `data_dir` must have it;
    2. a folder prepared by tensorflow-datasets, in `data_dir`, TFDS_DATA_DIR or ~/tensorflow_datasets;
    3. Debian's package dataset-fashion-mnist;
    4. earlier downloads, in SSM_CACHE_DIR or else the user's cache folder;
    5. a download of the original files into that folder. SSM_OFFLINE=1 forbids it.

    `auto` takes `preferred` if it is available or can be downloaded within 15 s, else mnist5k in place of
    mnist, and `Dataset.source` says so. No other name is ever replaced by another set.

    Raises a `DataError` (`ssm.data.errors`) that says where the set was searched for, or what can't be read.
    """
    try:
        place = _data_dir(data_dir)
        if name == "auto":
            return _auto(preferred, place, given=data_dir is not None)
        return _named(name, place, given=data_dir is not None, seconds=None)
    except OSError as error:
        what = error.filename or data_dir or name
        raise UnreadableError(f"{what}: can't be read ({error.strerror or error}), needed for {name}") from error


def cache_dir() -> pathlib.Path:
    """Where downloads are kept: SSM_CACHE_DIR, else `signed-supermask` in the user's (or a temporary) cache folder."""
    return own_cache_dir() or pathlib.Path(tempfile.gettempdir()) / f"signed-supermask-{os.getuid()}"


def own_cache_dir() -> pathlib.Path | None:
    """SSM_CACHE_DIR, else `signed-supermask` in the user's cache folder; None for a user without a home folder."""
    if place := os.environ.get("SSM_CACHE_DIR"):
        return pathlib.Path(os.path.expanduser(place))
    import pooch

    with contextlib.suppress(RuntimeError):  # a user id without a home folder, in a container, say
        place = pathlib.Path(pooch.os_cache("signed-supermask"))
        if place.is_absolute():  # earlier platformdirs take a folder named "~" here for it
            return place
    return None


def _auto(preferred: str, place: pathlib.Path | None, *, given: bool) -> Dataset:
    try:
        return _named(preferred, place, given=given, seconds=AUTO_SECONDS)
    except DownloadError as error:
        if preferred != "mnist":
            raise DownloadError(
                f"{error} Nothing replaces {preferred}; name it explicitly to download it "
                f"without the limit of {AUTO_SECONDS:g} s, or name another set.",
                short=error.short,
            ) from None
        reason = error
    try:
        stand_in = load_mnist5k()
    except DataError as error:
        raise DataError(f"{reason} Nor is its replacement available: {error}") from None
    source = f"{stand_in.source}; in place of mnist, which is not available ({reason.short})"
    return dataclasses.replace(stand_in, source=source)


def _named(name: str, place: pathlib.Path | None, *, given: bool, seconds: float | None) -> Dataset:
    if name == "mnist5k":
        return load_mnist5k()
    if name.startswith("tfds:"):
        places = [place] if given and place else folders(place)
        folder = find_prepared(name.removeprefix("tfds:"), places)
        if folder is None:
            raise missing_prepared(name.removeprefix("tfds:"), places)
        return read_prepared(folder, name=name)
    for prefix, load_own in ((NPZ, load_npz), (IDX, load_idx)):
        if name.startswith(prefix):
            return load_own(pathlib.Path(os.path.expanduser(name.removeprefix(prefix))))
    if name not in PUBLISHED:
        known = [known for known in NAMES if known != "auto"]
        raise DataError(
            f"unknown data set {name!r}, expected one of {', '.join(known)}, tfds:NAME, npz:FILE, idx:DIR or auto"
        )
    spec = PUBLISHED[name]
    dataset, looked = _local(spec, place, given=given)
    return dataset or _downloaded(spec, looked, seconds)


def _local(spec: Published, place: pathlib.Path | None, *, given: bool) -> tuple[Dataset | None, list[str]]:
    """Steps 1 to 4 of `load`: the data set, or None with the places that did not have it."""
    looked: list[str] = []
    if place:
        if folder := find_folder(spec, place):
            return read_folder(spec, folder), looked
        looked.append(str(place))

    places = [place] if given and place else folders(place)
    if folder := find_prepared(spec.name, places):
        try:
            return read_prepared(folder, name=spec.name), looked
        except DataError as error:  # the set may be available elsewhere
            looked.append(str(error))
    else:
        looked += [str(place / spec.name) for place in places]

    if given and place:
        raise missing_files(spec, place)
    kept = [cache_dir() / spec.folders[0]]
    for folder in [DEBIAN[spec.name], *kept] if spec.name in DEBIAN else kept:
        if all(find_files(spec, folder, name) for name in spec.files):
            return read_folder(spec, folder, published_only=True), looked
        looked.append(str(folder))
    return None, looked


def _downloaded(spec: Published, looked: list[str], seconds: float | None) -> Dataset:
    """Step 5 of `load`."""
    folder = cache_dir() / spec.folders[0]
    try:
        if os.environ.get("SSM_OFFLINE", "0") not in ("", "0"):
            raise DownloadError("SSM_OFFLINE forbids a download.", short="SSM_OFFLINE forbids a download")
        download(spec, folder, seconds=seconds)
    except DownloadError as error:
        raise DownloadError(
            f"{spec.name} is not available. Looked in {', '.join(looked)}. {error} "
            f"Put the files {', '.join(spec.files)}{' (or .gz)' if spec.format == 'idx' else ''} in a folder "
            "and give it as data_dir (--data-dir) or SSM_DATA_DIR.",
            short=error.short,
        ) from None
    except DataError as error:
        if seconds is None:
            raise
        # For auto a mirror with other contents (say, a hotel's login page) is as good as none.
        raise DownloadError(f"{error}", short="a download had the wrong contents") from None
    return read_folder(spec, folder, published_only=True)


def _data_dir(data_dir: str | os.PathLike[str] | None) -> pathlib.Path | None:
    place = data_dir if data_dir is not None else os.environ.get("SSM_DATA_DIR") or None
    if place is None:
        return None
    path = pathlib.Path(os.path.expanduser(place))  # an unknown ~user stays as it is
    if not path.is_dir():
        origin = "--data-dir" if data_dir is not None else "SSM_DATA_DIR"
        what = "a file" if path.exists() else "no such folder"
        raise MissingFilesError(f"{path}: {what}, expected a folder with data sets ({origin} names it)")
    return path
