import dataclasses

import numpy as np
import pytest

from ssm.data import DataError, Dataset, LabelRangeError
from ssm.errors import UserError


def make(**changes):
    values = dict(
        name="made",
        source="made: by a test",
        train_images=np.zeros((3, 2, 2, 1), np.uint8),
        train_labels=np.array([0, 1, 1], np.int32),
        test_images=np.zeros((2, 2, 2, 1), np.uint8),
        test_labels=np.array([1, 0], np.int32),
        classes=2,
        class_names=("no", "yes"),
    )
    return Dataset(**{**values, **changes})


def test_is_frozen_and_holds_what_it_was_given():
    dataset = make()
    assert dataset.train_labels.tolist() == [0, 1, 1] and dataset.class_names == ("no", "yes")
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.classes = 3


@pytest.mark.parametrize("label", [2, -1])
def test_label_out_of_range(label):
    with pytest.raises(LabelRangeError) as error:
        make(test_labels=np.array([1, label], np.int32))
    assert str(error.value) == (
        f"test part of made: by a test: label {label} at position 1 (1 of 2 are out of range), expected 0 to 1"
    )
    assert isinstance(error.value, UserError)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_images": np.zeros((3, 2, 2, 1), np.float32)}, "train part.*float32.*expected.*uint8"),
        ({"train_images": np.zeros((3, 4), np.uint8)}, r"\[3, 4\].*expected.*\[n, height, width, channels\]"),
        ({"test_images": np.zeros((0, 2, 2, 1), np.uint8)}, "test part.*at least one image"),
        ({"train_labels": np.array([0, 1, 1])}, "labels are int64.*expected int32"),
        ({"train_labels": np.array([0, 1], np.int32)}, r"labels are int32 \[2\], expected int32 \[3\]"),
        (
            {"test_images": np.zeros((2, 2, 3, 1), np.uint8)},
            r"images are \[2, 3, 1\], expected \[2, 2",
        ),
        ({"class_names": ("no",)}, "1 class names, expected one for each of 2"),
    ],
)
def test_what_does_not_fit(changes, message):
    with pytest.raises(DataError, match=message):
        make(**changes)


def test_fingerprint_tells_contents_apart_and_nothing_else():
    first = make()
    assert first.fingerprint() == make(name="other", source="elsewhere").fingerprint()
    assert first.fingerprint() != make(train_labels=np.array([1, 1, 1], np.int32)).fingerprint()
    assert first.fingerprint() != make(test_images=np.ones((2, 2, 2, 1), np.uint8)).fingerprint()
    assert len(first.fingerprint()) == 16


def test_the_last_training_images_are_held_out(digits):
    own = digits.held_out(45)
    assert (len(own.train_labels), len(own.test_labels)) == (160, 45)
    np.testing.assert_array_equal(own.test_images, digits.train_images[-45:])
    np.testing.assert_array_equal(own.train_labels, digits.train_labels[:-45])
    assert own.source.endswith("the last 45 training images as test set")
    assert own.fingerprint() != digits.fingerprint() and digits.held_out(0) is digits


def test_the_first_training_images_alone(digits):
    own = digits.held_out(45).first(30)
    np.testing.assert_array_equal(own.train_images, digits.train_images[:30])
    np.testing.assert_array_equal(own.test_labels, digits.train_labels[-45:])
    assert own.source.endswith("as test set; the first 30 training images")
    assert digits.first(0) is digits and digits.first(len(digits.train_labels)) is digits
