"""Where in a folder a data set's files are, by the names that people and programs give them, or what is there."""

import pathlib

from ssm.data.archive import has_any
from ssm.data.errors import MissingFilesError
from ssm.data.published import Published

_LISTED = 10  # of a folder's entries in a message
_GZIP_HEADER = 1 << 10  # bytes by which what can't be compressed grows, at most
_PYTHON = {
    "cifar10": ("cifar-10-batches-py", "cifar-10-python.tar.gz"),
    "cifar100": ("cifar-100-python", "cifar-100-python.tar.gz"),
}


def find_folder(spec: Published, data_dir: pathlib.Path) -> pathlib.Path | None:
    """The folder in or at `data_dir` that holds any file of `spec`, or its archive; or None.

    The conventional subfolders come before `data_dir` itself: MNIST and Fashion-MNIST share their file names.
    """
    for folder in [*(data_dir / name for name in spec.folders), data_dir]:
        if any(find_files(spec, folder, name) for name in spec.files) or find_archive(spec, folder):
            return folder
    return None


def find_files(spec: Published, folder: pathlib.Path, name: str) -> list[pathlib.Path]:
    """The files in `folder` that are `name`, best first, whatever the case of their letters.

    An IDX file may be called NAME.gz or have a dot before idx; any may be in a folder of its own name, as Kaggle's are.
    """
    names, found = file_names(spec, name), []
    entries = _entries(folder)
    for path in [entries[form] for form in names if form in entries]:
        inside = _entries(path)
        found += [inside[form] for form in names if form in inside] if path.is_dir() else [path]
    return [path for path in found if path.is_file()]


def missing_files(spec: Published, data_dir: pathlib.Path) -> MissingFilesError:
    """The error for a `data_dir` with no file of `spec`: what was searched for, and where; and what is there."""
    names = [file_names(spec, name) for name in spec.files]
    wanted = ", ".join(name[0] + ("(.gz)" if len(name) > 1 else "") for name in names)
    hint = ""
    if spec.archive:
        wanted += f" or {spec.archive}"
        python = _python_version(spec, data_dir)
        there = f"{python} is CIFAR's Python version: pickles, which are never read. " if python else ""
        hint = f" {there}Needed is the binary version, {spec.mirrors[0]}{spec.archive}, unpacked or not."
    return MissingFilesError(
        f"{data_dir}: no files of {spec.name}. Looked for {wanted}, there and in its subfolder "
        f"{' or '.join(spec.folders)}; put them in one of these folders.{hint} {listing(data_dir)}"
    )


def _entries(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """What a folder holds, by name in lower case; nothing if it is none."""
    return {path.name.lower(): path for path in sorted(folder.iterdir())} if folder.is_dir() else {}


def listing(folder: pathlib.Path) -> str:
    """Say what a folder holds, at most some ten names."""
    names = [path.name + "/" * path.is_dir() for path in sorted(folder.iterdir())]
    rest = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"{folder} holds {', '.join(names[:_LISTED])}{rest}." if names else f"{folder} is empty."


def file_names(spec: Published, name: str) -> list[str]:
    """The names that the file `name` of `spec` may have, in lower case, best first."""
    if spec.format == "cifar":
        return [name]
    dotted = name.replace("-idx", ".idx")
    return [name, f"{name}.gz", dotted, f"{dotted}.gz"]


def sizes(spec: Published) -> dict[str, int]:
    """The names that the files of `spec` may have, and the most bytes."""
    forms = [(form, file.size) for name, file in spec.files.items() for form in file_names(spec, name)]
    return {form: size + _GZIP_HEADER * form.endswith(".gz") for form, size in forms}


def find_archive(spec: Published, folder: pathlib.Path) -> pathlib.Path | None:
    """The published archive in `folder`, unpacked to .tar by a browser perhaps, or for IDX files a zip that has any."""
    entries = _entries(folder)
    if spec.archive:
        return next((entries[name] for name in (spec.archive, spec.archive[: -len(".gz")]) if name in entries), None)
    zips = ["archive.zip", *(f"{name}.zip" for name in spec.folders)]  # the first is what Kaggle calls any data set
    return next((entries[name] for name in zips if name in entries and has_any(entries[name], sizes(spec))), None)


def _python_version(spec: Published, data_dir: pathlib.Path) -> pathlib.Path | None:
    """The folder or archive in or at `data_dir` that is CIFAR's Python version, or None."""
    for place in (data_dir, data_dir / spec.folders[0]):
        entries = _entries(place)
        if all(name.removesuffix(".bin") in entries for name in spec.files):
            return place
        if found := next((entries[name] for name in _PYTHON[spec.name] if name in entries), None):
            return found
    return None
