"""A published data set in a folder: find the files, read them, check their SHA-256."""

import hashlib
import pathlib

import numpy as np

from ssm.data.dataset import Dataset, check_labels
from ssm.data.errors import DataError, MissingFilesError, WrongHashError
from ssm.data.formats import parse_cifar, parse_idx, read_bytes
from ssm.data.published import Published

_BINARY_HINT = " CIFAR is read in its binary version, not the Python one."


def find_folder(spec: Published, data_dir: pathlib.Path) -> pathlib.Path | None:
    """The folder in or at `data_dir` that holds any file of `spec`, or None.

    The conventional subfolders come before `data_dir` itself: MNIST and Fashion-MNIST share their file names.
    """
    for folder in [*(data_dir / name for name in spec.folders), data_dir]:
        if any(find_file(spec, folder, name) for name in spec.files):
            return folder
    return None


def find_file(spec: Published, folder: pathlib.Path, name: str) -> pathlib.Path | None:
    """The file `name` in `folder`, or None; an IDX file may be called NAME.gz or have a dot before idx."""
    for candidate in _file_names(spec, name):
        if (folder / candidate).is_file():
            return folder / candidate
    return None


def missing_files(spec: Published, data_dir: pathlib.Path) -> MissingFilesError:
    """The error for a `data_dir` with no file of `spec`: names the files searched for, and where."""
    names = [_file_names(spec, name) for name in spec.files]
    wanted = ", ".join(name[0] + ("(.gz)" if len(name) > 1 else "") for name in names)
    hint = _BINARY_HINT if spec.format == "cifar" else ""
    return MissingFilesError(
        f"{data_dir}: no files of {spec.name}. Looked for {wanted}, there and in its subfolder "
        f"{' or '.join(spec.folders)}; put them in one of these folders.{hint}"
    )


def read_folder(spec: Published, folder: pathlib.Path, *, published_only: bool = False) -> Dataset:
    """Read the files of `spec` in `folder`.

    A file of the published length must have the published SHA-256. One of another length is taken as the user's
    own data in the same format, as `Dataset.source` then says, unless `published_only`.
    Raises `MissingFilesError` if some files are missing, `WrongHashError`, or what `ssm.data.formats` raises.
    """
    paths = {name: path for name in spec.files if (path := find_file(spec, folder, name))}
    missing = [name for name in spec.files if name not in paths]
    if missing:
        expected = "expected it" if len(missing) == 1 else "expected them"
        raise MissingFilesError(
            f"{folder}: no {', '.join(missing)}; {expected} beside the other files of {spec.name}. "
            "Put the missing files there, or move the others away."
        )
    parts, published = [], True
    for name, path in paths.items():
        data = read_bytes(path)
        parts.append(_parse(spec, name, data, path))
        published &= is_published(spec, name, data, path, required=published_only)
    if spec.format == "idx":
        train_images, train_labels, test_images, test_labels = parts
        arrays = train_images[..., None], train_labels, test_images[..., None], test_labels
    else:
        (*train, test) = parts
        arrays = (*(np.concatenate(part) for part in zip(*train, strict=True)), *test)
    verdict = "the published files, SHA-256 checked" if published else "not the published files"
    return _dataset(spec, f"{spec.name}: files in {folder} ({verdict})", arrays)


def is_published(spec: Published, name: str, data: bytes, path: pathlib.Path, *, required: bool) -> bool:
    """Whether `data` (unpacked) is the published file `name` of `spec`.

    Raises `WrongHashError` naming `path` if it is not, and either `required` or of the published length.
    """
    expected = spec.files[name]
    found = hashlib.sha256(data).hexdigest()
    if found == expected.sha256:
        return True
    if required or len(data) == expected.size:
        raise WrongHashError(
            f"{path}: SHA-256 of the unpacked file is {found} ({len(data):,} bytes), "
            f"expected {expected.sha256} ({expected.size:,} bytes) for {name} of {spec.name}. "
            "It is damaged or from another data set: "
            "delete or replace it."
        )
    return False


def _file_names(spec: Published, name: str) -> list[str]:
    if spec.format == "cifar":
        return [name]
    dotted = name.replace("-idx", ".idx")
    return [name, f"{name}.gz", dotted, f"{dotted}.gz"]


def _parse(spec: Published, name: str, data: bytes, path: pathlib.Path):
    if spec.format == "cifar":
        return parse_cifar(data, len(spec.class_names), path)
    if "images" in name:
        return parse_idx(data, 3, path)
    labels = parse_idx(data, 1, path).astype(np.int32)
    check_labels(labels, len(spec.class_names), str(path))
    return labels


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
