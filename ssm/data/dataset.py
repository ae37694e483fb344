"""The type that every source of data returns."""

import dataclasses
import hashlib
from typing import Self

import numpy as np
from jaxtyping import Int32, UInt8

from ssm.data.errors import DataError, LabelRangeError


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """A training and a test set of images of one size, checked on creation.

    Images are uint8 [n, height, width, channels], 0 to 255; labels int32 [n], 0 to classes - 1.
    `source` is one printable line: where the data came from, and whether the files are the published ones.
    `class_names` has one name per class, in label order.

    Raises `LabelRangeError` for a label out of range, `DataError` for a wrong shape, dtype or count.
    """

    name: str
    source: str
    train_images: UInt8[np.ndarray, "n h w c"]
    train_labels: Int32[np.ndarray, " n"]
    test_images: UInt8[np.ndarray, "m h w c"]
    test_labels: Int32[np.ndarray, " m"]
    classes: int
    class_names: tuple[str, ...]

    def fingerprint(self) -> str:
        """Return 16 hex digits that identify these images and labels."""
        digest = hashlib.blake2b(digest_size=8)
        for array in (self.train_images, self.train_labels, self.test_images, self.test_labels):
            digest.update(str(array.shape).encode() + np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def held_out(self, count: int) -> Self:
        """Return the same with the last `count` training images in place of the test set; 0 leaves it as it is."""
        if count == 0:
            return self
        return dataclasses.replace(
            self,
            source=f"{self.source}; the last {count:,} training images as test set",
            train_images=self.train_images[:-count],
            train_labels=self.train_labels[:-count],
            test_images=self.train_images[-count:],
            test_labels=self.train_labels[-count:],
        )

    def first(self, count: int) -> Self:
        """Return the same with the first `count` training images alone; 0 leaves it as it is."""
        if count in (0, len(self.train_labels)):
            return self
        return dataclasses.replace(
            self,
            source=f"{self.source}; the first {count:,} training images",
            train_images=self.train_images[:count],
            train_labels=self.train_labels[:count],
        )

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            images, labels = getattr(self, f"{part}_images"), getattr(self, f"{part}_labels")
            where = f"{part} part of {self.source}"
            self._check_inputs(images, where)
            if labels.dtype != np.int32 or labels.shape != images.shape[:1]:
                raise DataError(
                    f"{where}: labels are {labels.dtype} {list(labels.shape)}, "
                    f"expected int32 [{len(images)}], one for each image"
                )
            check_labels(labels, self.classes, where)
        if self.train_images.shape[1:] != self.test_images.shape[1:]:
            raise DataError(
                f"{self.source}: test images are {list(self.test_images.shape[1:])}, "
                f"expected {list(self.train_images.shape[1:])} as in the training part"
            )
        if len(self.class_names) != self.classes:
            raise DataError(
                f"{self.source}: {len(self.class_names)} class names, expected one for each of {self.classes} classes"
            )

    def _check_inputs(self, images: np.ndarray, where: str) -> None:
        if images.dtype != np.uint8 or images.ndim != 4 or len(images) == 0:
            raise DataError(
                f"{where}: images are {images.dtype} {list(images.shape)}, "
                "expected at least one image as uint8 [n, height, width, channels]"
            )


class ArrayDataset(Dataset):
    """One's own inputs of any dtype and rank [n, ...] in place of images; a net is given them as they are."""

    def _check_inputs(self, images: np.ndarray, where: str) -> None:
        if images.ndim == 0 or len(images) == 0 or images.dtype.kind not in "biuf":
            raise DataError(f"{where}: inputs are {images.dtype} {list(images.shape)}, expected real numbers, [n, ...]")


def check_labels(labels: np.ndarray, classes: int, where: str, *, kind: str = "label") -> None:
    """Raise `LabelRangeError` naming the first of `labels` [n] that is not in 0 to classes - 1.

    `where` names the file; `kind` what the labels are ("coarse label").
    """
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        raise LabelRangeError(
            f"{where}: {kind} {labels[wrong[0]]} at position {wrong[0]} "
            f"({wrong.size:,} of {len(labels):,} are out of range), expected 0 to {classes - 1}"
        )
