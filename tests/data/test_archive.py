import io
import tarfile
import zipfile

import pytest

from ssm.data import CorruptFileError
from ssm.data.archive import has_any, read_archive

FILES = {"a.bin": b"aaaa", "b.bin": b"bb"}
SIZES = {"a.bin": 4, "b.bin": 4, "c.bin": 4}


@pytest.fixture(params=["tar", "tar.gz", "zip"])
def archive(request, tmp_path, helpers):
    make = helpers.zipped if request.param == "zip" else helpers.pack
    return make(tmp_path / f"made.{request.param}", {"deep/A.bin": FILES["a.bin"], "b.bin": b"bb", "other": b"."})


def test_reads_the_wanted_files_from_any_folder(archive):
    assert read_archive(archive, SIZES, of="tiny") == FILES


def test_a_larger_file_is_not_read(archive):
    with pytest.raises(CorruptFileError, match=r"called: a\.bin: 4 bytes, expected 3 bytes"):
        read_archive(archive, SIZES | {"a.bin": 3}, of="tiny", called="called")


@pytest.mark.parametrize("damage", ["cut", "empty", "no archive", "flipped"])
def test_damage_is_said_in_one_line(archive, damage):
    whole = archive.read_bytes()
    if damage == "flipped" and archive.suffix == ".tar":
        pytest.skip("a tar file without gzip has no checksums of contents")
    middle = whole.index(b"aaaa") if archive.suffix == ".zip" else len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
    cut = whole[: 514 if archive.suffix == ".tar" else len(whole) // 2]
    archive.write_bytes({"cut": cut, "empty": b"", "no archive": b"x" * 600}.get(damage, flipped))
    with pytest.raises(CorruptFileError, match=r"can't be unpacked \(.*\), expected an intact archive of t") as error:
        read_archive(archive, SIZES, of="tiny")
    assert str(error.value).startswith(str(archive)) and "\n" not in str(error.value)


def test_links_and_folders_are_no_files(tmp_path):
    path = tmp_path / "made.tar"
    with tarfile.open(path, "w") as tar:
        for name, kind in (("a.bin", tarfile.SYMTYPE), ("b.bin", tarfile.DIRTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
    assert read_archive(path, SIZES, of="tiny") == {}


def test_which_zips_have_any(tmp_path, helpers):
    assert has_any(helpers.zipped(tmp_path / "a.zip", {"x/B.bin": b""}), SIZES)
    assert not has_any(helpers.zipped(tmp_path / "b.zip", {"x": b""}), SIZES)
    (tmp_path / "c.zip").write_bytes(b"damaged")
    assert has_any(tmp_path / "c.zip", SIZES)


def test_a_password_is_an_error(tmp_path):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as made:
        made.writestr("a.bin", b"aaaa")
    data = bytearray(memory.getvalue())
    data[6] |= 1  # the flags of the file, and of its entry in the directory: encrypted
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "made.zip").write_bytes(data)
    with pytest.raises(CorruptFileError, match="password required"):
        read_archive(tmp_path / "made.zip", SIZES, of="tiny")
