import pytest

from ssm.data import (
    DataError,
    LabelRangeError,
    MissingFilesError,
    TruncatedFileError,
    WrongHashError,
    WrongMagicError,
)
from ssm.data.folder import read_folder
from ssm.data.published import PUBLISHED

MNIST, FASHION, CIFAR10, CIFAR100 = (PUBLISHED[n] for n in ("mnist", "fashion_mnist", "cifar10", "cifar100"))


@pytest.mark.parametrize("packed", [False, True])
def test_reads_idx(tmp_path, helpers, packed):
    helpers.write(tmp_path, helpers.tiny_idx(), packed=packed)
    dataset = read_folder(MNIST, tmp_path)
    assert dataset.name == "mnist" and dataset.classes == 10
    assert dataset.train_images.shape == (3, 2, 3, 1) and dataset.test_images.shape == (2, 2, 3, 1)
    assert dataset.train_images[2, 1, :, 0].tolist() == [15, 16, 17]
    assert dataset.train_labels.tolist() == [3, 0, 9] and dataset.test_labels.tolist() == [1, 2]
    assert dataset.source == f"mnist: files in {tmp_path} (not the published files)"


def test_reads_idx_with_dotted_names(tmp_path, helpers):
    files = {name.replace("-idx", ".idx"): data for name, data in helpers.tiny_idx().items()}
    assert read_folder(FASHION, helpers.write(tmp_path, files)).class_names[9] == "Ankle boot"


def test_reads_cifar10_batches_in_order(tmp_path, helpers):
    files = {name: bytes([label]) + bytes([label]) * 3072 for label, name in enumerate(CIFAR10.files)}
    dataset = read_folder(CIFAR10, helpers.write(tmp_path, files))
    assert dataset.train_labels.tolist() == [0, 1, 2, 3, 4] and dataset.test_labels.tolist() == [5]
    assert dataset.train_images[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4]
    assert dataset.class_names[5] == "dog"


def test_reads_cifar100(tmp_path, helpers):
    helpers.write(tmp_path, {"train.bin": bytes([4, 0]) + bytes(3072), "test.bin": bytes([14, 98]) + bytes(3072)})
    dataset = read_folder(CIFAR100, tmp_path)
    assert dataset.classes == 100
    assert [dataset.class_names[label] for label in (*dataset.train_labels, *dataset.test_labels)] == [
        "apple",
        "woman",
    ]


def test_says_when_the_files_are_the_published_ones(tmp_path, helpers):
    spec = helpers.published_as(MNIST, helpers.tiny_idx())
    helpers.write(tmp_path, helpers.tiny_idx(), packed=True)
    assert read_folder(spec, tmp_path).source.endswith("(the published files, SHA-256 checked)")


def test_wrong_hash_at_the_published_length(tmp_path, helpers):
    spec = helpers.published_as(MNIST, helpers.tiny_idx())
    files = helpers.tiny_idx()
    files["t10k-images-idx3-ubyte"] = files["t10k-images-idx3-ubyte"][:-1] + b"\0"
    helpers.write(tmp_path, files)
    with pytest.raises(WrongHashError) as error:
        read_folder(spec, tmp_path)
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 't10k-images-idx3-ubyte'}: SHA-256")
    assert spec.files["t10k-images-idx3-ubyte"].sha256 in message and "of mnist" in message


def test_wrong_length_where_only_the_published_files_will_do(tmp_path, helpers):
    helpers.write(tmp_path, helpers.tiny_idx())
    with pytest.raises(WrongHashError, match=r"train-images-idx3-ubyte: .*expected ba891046.*47,040,016 bytes"):
        read_folder(MNIST, tmp_path, published_only=True)


@pytest.mark.parametrize(
    ("name", "change", "kind", "message"),
    [
        ("train-images-idx3-ubyte", lambda data: data[:-1], TruncatedFileError, "train-images.*truncated"),
        (
            "train-labels-idx1-ubyte",
            lambda data: b"\1" + data[1:],
            WrongMagicError,
            "train-labels.*0x01000801",
        ),
        (
            "t10k-labels-idx1-ubyte",
            lambda data: data[:-1] + b"\x0a",
            LabelRangeError,
            "t10k-labels.*label 10",
        ),
        (
            "t10k-labels-idx1-ubyte",
            lambda data: data[:7] + b"\3" + data[8:] + b"\0",
            DataError,
            "2 test images but 3 test labels",
        ),
    ],
)
def test_errors_in_one_file(tmp_path, helpers, name, change, kind, message):
    files = helpers.tiny_idx()
    files[name] = change(files[name])
    with pytest.raises(kind, match=message) as error:
        read_folder(MNIST, helpers.write(tmp_path, files))
    assert str(tmp_path) in str(error.value)


def test_a_file_is_absent(tmp_path, helpers):
    files = helpers.tiny_idx()
    del files["t10k-labels-idx1-ubyte"], files["train-labels-idx1-ubyte"]
    with pytest.raises(
        MissingFilesError, match="no train-labels-idx1-ubyte, t10k-labels-idx1-ubyte; expected them beside"
    ):
        read_folder(MNIST, helpers.write(tmp_path, files))


def test_of_several_forms_the_first_that_is_whole_is_read(tmp_path, helpers):
    spec, files = helpers.published_as(MNIST, helpers.tiny_idx()), helpers.tiny_idx()
    helpers.write(tmp_path, {name: data[:20] if "images" in name else b"" for name, data in files.items()})
    with pytest.raises(TruncatedFileError, match="train-images-idx3-ubyte: truncated, 20 bytes"):
        read_folder(spec, tmp_path)
    helpers.write(tmp_path, files, packed=True)
    assert read_folder(spec, tmp_path).source.endswith("(the published files, SHA-256 checked)")


def test_an_empty_file_is_said(tmp_path, helpers):
    for files in ({name: b"" for name in MNIST.files}, {name: b"" for name in CIFAR10.files}):
        spec = MNIST if len(files) == 4 else CIFAR10
        with pytest.raises(TruncatedFileError, match=f"{next(iter(files))}: an empty file"):
            read_folder(spec, helpers.write(tmp_path, files))


@pytest.mark.parametrize("name", ["cifar-10-binary.tar.gz", "CIFAR-10-binary.tar"])
def test_an_archive_is_read_where_it_is(tmp_path, helpers, name):
    files = {name: bytes([label]) * 3073 for label, name in enumerate(CIFAR10.files)}
    spec = helpers.published_as(CIFAR10, files)
    archive = helpers.pack(tmp_path / name, files)
    dataset = read_folder(spec, tmp_path)
    assert dataset.train_labels.tolist() == [0, 1, 2, 3, 4] and dataset.test_labels.tolist() == [5]
    assert dataset.source == f"cifar10: files in {archive} (the published files, SHA-256 checked)"
    assert list(tmp_path.iterdir()) == [archive]  # nothing is unpacked there
    helpers.write(tmp_path, {"test_batch.bin": files["test_batch.bin"]})  # some files alone are no reason not to
    assert str(archive) in read_folder(spec, tmp_path).source
    helpers.pack(tmp_path / name, files | {"test_batch.bin": bytes([7]) * 3073})
    with pytest.raises(WrongHashError, match=rf"{name}/test_batch\.bin: SHA-256 .*use --dataset=npz:FILE"):
        read_folder(spec, tmp_path)
    helpers.pack(tmp_path / name, {"test_batch.bin": files["test_batch.bin"]})
    with pytest.raises(MissingFilesError, match=rf"{name}: no data_batch_1\.bin, .*Copy or download it again\."):
        read_folder(spec, tmp_path)


@pytest.mark.parametrize("packed", [False, True])
def test_a_zip_of_kaggles_is_read(tmp_path, helpers, packed):
    spec = helpers.published_as(MNIST, helpers.tiny_idx())
    files = {
        f"{name}/{name}.gz" if packed else f"mnist/{name.replace('-idx', '.idx')}": data
        for name, data in helpers.tiny_idx().items()
    }
    helpers.zipped(tmp_path / "archive.zip", {"readme.txt": b"a password is needed"} | files, packed=packed)
    assert read_folder(spec, tmp_path).source.endswith("archive.zip (the published files, SHA-256 checked)")


def test_other_data_under_published_names_is_told_where_it_belongs(tmp_path, helpers):
    files = helpers.tiny_idx()
    other = files | {"train-images-idx3-ubyte": files["train-images-idx3-ubyte"][:-1] + b"\xff"}
    helpers.write(tmp_path, other)
    with pytest.raises(WrongHashError, match="replace it; or, if it is meant to be other data, use --dataset=idx:DIR"):
        read_folder(helpers.published_as(MNIST, files), tmp_path)


def test_the_published_facts_are_complete():
    for spec in PUBLISHED.values():
        assert len(spec.class_names) == len(set(spec.class_names)) == (100 if spec is CIFAR100 else 10)
        assert all(len(file.sha256) == 64 and file.size > 0 for file in spec.files.values())
        assert all(mirror.startswith("http") and mirror.endswith("/") for mirror in spec.mirrors)
    assert sorted(CIFAR100.class_names) == list(CIFAR100.class_names)
    hashes = [file.sha256 for spec in PUBLISHED.values() for file in spec.files.values()]
    assert len(hashes) == len(set(hashes)) == 16
