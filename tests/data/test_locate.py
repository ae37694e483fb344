import pytest

from ssm.data.locate import find_files, find_folder, missing_files
from ssm.data.published import PUBLISHED

MNIST, FASHION, CIFAR10, CIFAR100 = (PUBLISHED[n] for n in ("mnist", "fashion_mnist", "cifar10", "cifar100"))
IMAGES = "train-images-idx3-ubyte"


@pytest.mark.parametrize("subfolder", ["", "fashion_mnist", "fashion-mnist", "FashionMNIST/raw"])
def test_finds_the_conventional_folders(tmp_path, helpers, subfolder):
    folder = helpers.write(tmp_path / subfolder, helpers.tiny_idx())
    assert find_folder(FASHION, tmp_path) == folder


def test_a_subfolder_comes_before_the_folder_itself(tmp_path, helpers):
    helpers.write(tmp_path, helpers.tiny_idx())
    assert find_folder(FASHION, tmp_path) == tmp_path
    helpers.write(tmp_path / "fashion-mnist", helpers.tiny_idx())
    assert find_folder(FASHION, tmp_path) == tmp_path / "fashion-mnist"
    assert find_folder(MNIST, tmp_path) == tmp_path


def test_lists_the_names_it_looked_for(tmp_path):
    assert find_folder(CIFAR10, tmp_path) is None
    message = str(missing_files(CIFAR10, tmp_path))
    assert message.startswith(f"{tmp_path}: no files of cifar10")
    for name in (*CIFAR10.files, "cifar-10-batches-bin", "binary version", "cifar-10-binary.tar.gz, unpacked or not"):
        assert name in message
    assert "train-labels-idx1-ubyte(.gz)" in str(missing_files(MNIST, tmp_path))


@pytest.mark.parametrize(
    "names",
    [
        (IMAGES, f"{IMAGES}.gz", "train-images.idx3-ubyte"),
        ("TRAIN-IMAGES-IDX3-UBYTE", "Train-Images.idx3-ubyte.GZ"),
        (f"{IMAGES}/{IMAGES}", "train-images.idx3-ubyte/train-images.idx3-ubyte"),
        (f"{IMAGES}/train-images.idx3-ubyte", f"{IMAGES}.gz/{IMAGES}"),
    ],
)
def test_the_names_that_files_have(tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "train-labels-idx1-ubyte").mkdir()  # an empty folder is no file
    assert find_files(MNIST, tmp_path, IMAGES) == [tmp_path / name for name in names]
    assert find_files(MNIST, tmp_path, "train-labels-idx1-ubyte") == []
    assert find_folder(MNIST, tmp_path) == tmp_path


def test_an_archive_makes_a_folder_the_one(tmp_path, helpers):
    (tmp_path / "archive.zip").write_bytes(b"damaged, which reading it says")
    assert find_folder(MNIST, tmp_path) == tmp_path
    helpers.zipped(tmp_path / "archive.zip", {"cats/1.png": b"another set"})
    assert find_folder(MNIST, tmp_path) is None
    (tmp_path / "cifar-10-batches-bin").mkdir()
    (tmp_path / "cifar-10-batches-bin" / "cifar-10-binary.tar.gz").touch()
    assert find_folder(CIFAR10, tmp_path) == tmp_path / "cifar-10-batches-bin"
    assert find_folder(CIFAR100, tmp_path) is None


def test_says_what_is_there_instead(tmp_path):
    assert str(missing_files(MNIST, tmp_path)).endswith(f"{tmp_path} is empty.")
    for number in range(9):
        (tmp_path / f"{number}.png").touch()
    (tmp_path / "cats").mkdir()
    holds = ", ".join(f"{number}.png" for number in range(9))
    assert str(missing_files(MNIST, tmp_path)).endswith(f"{tmp_path} holds {holds}, cats/.")
    (tmp_path / "a.png").touch()
    assert str(missing_files(MNIST, tmp_path)).endswith(f"{tmp_path} holds {holds}, a.png and 1 more.")


@pytest.mark.parametrize(
    ("spec", "there", "seen"),
    [
        (CIFAR10, ["cifar-10-batches-py/data_batch_1"], "cifar-10-batches-py"),
        (CIFAR10, [*(name.removesuffix(".bin") for name in CIFAR10.files), "batches.meta"], ""),
        (CIFAR10, ["cifar-10-batches-bin/cifar-10-python.tar.gz"], "cifar-10-batches-bin/cifar-10-python.tar.gz"),
        (CIFAR100, ["cifar-100-python/train"], "cifar-100-python"),
        (CIFAR100, ["cifar-100-python.tar.gz"], "cifar-100-python.tar.gz"),
        (CIFAR100, ["cifar-10-python.tar.gz", "train"], None),
    ],
)
def test_the_python_version_is_recognised(tmp_path, spec, there, seen):
    for name in there:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"\x80\x04a pickle")
    message = str(missing_files(spec, tmp_path))
    assert ("is CIFAR's Python version: pickles, which are never read. " in message) == (seen is not None)
    if seen is not None:
        assert f" {tmp_path / seen} is CIFAR's" in message
    assert f"Needed is the binary version, https://www.cs.toronto.edu/~kriz/{spec.archive}, unpacked or not." in message
