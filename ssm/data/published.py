"""The published files of the named sets: file names, lengths, SHA-256, mirrors and class names.

Lengths and hashes are of the unpacked files, since mirrors and Debian compressed them again: the same
contents in other gzip bytes. Fashion-MNIST's are from Debian's package dataset-fashion-mnist.
"""

import dataclasses
from collections.abc import Mapping
from typing import Literal


@dataclasses.dataclass(frozen=True)
class File:
    """Length in bytes and SHA-256 (hexadecimal) of a published file, unpacked."""

    size: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Published:
    """A published data set; `folders` are the subfolders where it is usually kept, the conventional one first.

    `files` maps names to lengths and hashes: for IDX train images, train labels, test images, test labels, in order;
    for CIFAR the training batches in order, then the test batch. `mirrors` are base addresses ending in a
    slash, tried in order; `archive` is the one file to download there, or None where each of `files` is
    there, gzipped.
    """

    name: str
    format: Literal["idx", "cifar"]
    folders: tuple[str, ...]
    files: dict[str, File]
    mirrors: tuple[str, ...]
    archive: str | None
    class_names: tuple[str, ...]


def _idx(*hashes: str) -> dict[str, File]:
    names = (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
    sizes = (47_040_016, 60_008, 7_840_016, 10_008)
    return {name: File(size, digest) for name, size, digest in zip(names, sizes, hashes, strict=True)}


_CIFAR100_CLASSES = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark
shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""

_CIFAR_MIRRORS = (
    "https://www.cs.toronto.edu/~kriz/",
    "https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/",
)

_MNIST = Published(
    name="mnist",
    format="idx",
    folders=("mnist", "MNIST/raw"),
    files=_idx(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    mirrors=(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ),
    archive=None,
    class_names=tuple("0123456789"),
)

_FASHION_MNIST = Published(
    name="fashion_mnist",
    format="idx",
    folders=("fashion_mnist", "fashion-mnist", "FashionMNIST/raw"),
    files=_idx(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    ),
    archive=None,
    class_names=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
)

_CIFAR10 = Published(
    name="cifar10",
    format="cifar",
    folders=("cifar-10-batches-bin",),
    files={
        name: File(30_730_000, digest)
        for name, digest in {
            "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
            "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
            "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
            "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
            "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
            "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        }.items()
    },
    mirrors=_CIFAR_MIRRORS,
    archive="cifar-10-binary.tar.gz",
    class_names=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
)

_CIFAR100 = Published(
    name="cifar100",
    format="cifar",
    folders=("cifar-100-binary",),
    files={
        "train.bin": File(153_700_000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"),
        "test.bin": File(30_740_000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"),
    },
    mirrors=_CIFAR_MIRRORS,
    archive="cifar-100-binary.tar.gz",
    class_names=tuple(_CIFAR100_CLASSES.split()),
)

PUBLISHED: dict[str, Published] = {spec.name: spec for spec in (_MNIST, _FASHION_MNIST, _CIFAR10, _CIFAR100)}

# Parts of a published set with their own names.
STAND_INS: Mapping[str, str] = {"mnist5k": "mnist"}
