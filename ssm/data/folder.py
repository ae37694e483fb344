"""A published data set in a folder: read its files, packed or not, and check their SHA-256."""

import hashlib
import pathlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ssm.data.archive import read_archive
from ssm.data.dataset import Dataset, check_labels
from ssm.data.errors import DataError, MissingFilesError, WrongHashError
from ssm.data.formats import parse_cifar, parse_idx, read_bytes, unpacked
from ssm.data.locate import file_names, find_archive, find_files, listing, sizes
from ssm.data.published import Published

Form = tuple[pathlib.Path, Callable[[], bytes]]
"""One form of a file: how messages name it, and what reads it, unpacked."""
Files = Mapping[str, list[Form]]
"""The forms of each file of a data set, best first."""


def read_folder(spec: Published, folder: pathlib.Path, *, published_only: bool = False) -> Dataset:
    """Read the files of `spec` in `folder`, or in its archive there.

    A file of the published length must have the published SHA-256. One of another length is taken as the user's
    own data in the same format, as `Dataset.source` then says, unless `published_only`. Of several forms of a file, the
    first that is whole is read.
    Raises `MissingFilesError` if some files are missing, `WrongHashError`, or what `ssm.data.formats` raises.
    """
    files, place, hashes = loose_files(spec, folder), folder, []
    if not all(files.values()) and (archive := find_archive(spec, folder)):
        files, place = _packed_files(spec, archive), archive
    check_complete(files, place, spec.name)

    def parse(name: str, data: bytes, path: pathlib.Path) -> Any:
        part = _parse(spec, name, data, path)
        hashes.append(is_published(spec, name, data, path, required=published_only))
        return part

    parts = [first_whole(forms, partial(parse, name)) for name, forms in files.items()]
    if spec.format == "idx":
        train_images, train_labels, test_images, test_labels = parts
        arrays = train_images[..., None], train_labels, test_images[..., None], test_labels
    else:
        (*train, test) = parts
        arrays = (*(np.concatenate(part) for part in zip(*train, strict=True)), *test)
    verdict = "the published files, SHA-256 checked" if all(hashes) else "not the published files"
    return _dataset(spec, f"{spec.name}: files in {place} ({verdict})", arrays)


def is_published(spec: Published, name: str, data: bytes, path: pathlib.Path, *, required: bool) -> bool:
    """Whether `data` (unpacked) is the published file `name` of `spec`.

    Raises `WrongHashError` naming `path` if it is not, and either `required` or of the published length.
    """
    expected = spec.files[name]
    found = hashlib.sha256(data).hexdigest()
    if found == expected.sha256:
        return True
    if required or len(data) == expected.size:
        own = "--dataset=idx:DIR, with DIR their folder" if spec.format == "idx" else "--dataset=npz:FILE"
        raise WrongHashError(
            f"{path}: SHA-256 of the unpacked file is {found} ({len(data):,} bytes), "
            f"expected {expected.sha256} ({expected.size:,} bytes) for {name} of {spec.name}. "
            "It is damaged or from another data set: "
            + ("delete or replace it." if required else f"replace it; or, if it is meant to be other data, use {own}.")
        )
    return False


def loose_files(spec: Published, folder: pathlib.Path) -> Files:
    """The files of `spec` that lie in `folder`."""
    return {name: [(path, partial(read_bytes, path)) for path in find_files(spec, folder, name)] for name in spec.files}


def check_complete(files: Files, place: pathlib.Path, of: str) -> None:
    """Raise `MissingFilesError` if `place`, a folder or an archive, lacks a file of the data set `of`."""
    if missing := [name for name, forms in files.items() if not forms]:
        expected = "expected it" if len(missing) == 1 else "expected them"
        others = " beside the other files" if len(missing) < len(files) else ""
        advice = "Copy or download it again."
        if place.is_dir():
            advice = f"Put the missing files there, or move the others away. {listing(place)}"
        raise MissingFilesError(f"{place}: no {', '.join(missing)}; {expected}{others} of {of}. {advice}")


def first_whole(forms: list[Form], parse: Callable[[bytes, pathlib.Path], Any]) -> Any:
    """What `parse` makes of the first form that it can read; raises the first one's error if it can read none."""
    errors: list[Exception] = []
    for path, read in forms:
        try:
            return parse(read(), path)
        except (DataError, OSError) as error:
            errors.append(error)
    raise errors[0]


def parse_idx_file(name: str, data: bytes, path: pathlib.Path) -> np.ndarray:
    """The images uint8 [n, height, width] or labels int32 [n] of an IDX file, whichever its name says."""
    return parse_idx(data, 3, path) if "images" in name else parse_idx(data, 1, path).astype(np.int32)


def _packed_files(spec: Published, archive: pathlib.Path) -> Files:
    data = read_archive(archive, sizes(spec), of=spec.name)
    return {
        name: [(archive / form, partial(unpacked, data[form], archive / form)) for form in forms if form in data]
        for name, forms in ((name, file_names(spec, name)) for name in spec.files)
    }


def _parse(spec: Published, name: str, data: bytes, path: pathlib.Path) -> Any:
    if spec.format == "cifar":
        return parse_cifar(data, len(spec.class_names), path)
    part = parse_idx_file(name, data, path)
    if part.ndim == 1:
        check_labels(part, len(spec.class_names), str(path))
    return part


def _dataset(spec: Published, source: str, arrays) -> Dataset:
    train_images, train_labels, test_images, test_labels = arrays
    for part, images, labels in (("train", train_images, train_labels), ("test", test_images, test_labels)):
        if len(images) != len(labels):
            raise DataError(
                f"{source}: {len(images):,} {part} images but {len(labels):,} {part} labels, "
                "expected as many. "
                "Are the files from different data sets?"
            )
    return Dataset(
        name=spec.name,
        source=source,
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        classes=len(spec.class_names),
        class_names=spec.class_names,
    )
