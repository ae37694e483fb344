import importlib.util
import io
import json
import shutil
import sys

import numpy as np
import pytest

from ssm.data import DataError, MissingFilesError, load
from ssm.data.prepared import find_prepared, read_prepared

for module in ("tensorflow_datasets", "array_record", "importlib_resources", "PIL"):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of tensorflow-datasets itself

SHAPE = (4, 5, 3)


def example_images(count, seed):
    return np.random.default_rng(seed).integers(0, 256, (count, *SHAPE)).astype(np.uint8)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A set `tiny` of 7 + 5 images, prepared without TensorFlow (only raw arrays need it)."""
    import tensorflow_datasets as tfds
    from PIL import Image

    def examples(count, seed):
        for index, image in enumerate(example_images(count, seed)):
            file = io.BytesIO()
            Image.fromarray(image).save(file, "PNG")
            file.seek(0)
            yield index, {"image": file, "label": index % 3}

    class Tiny(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            features = {
                "image": tfds.features.Image(shape=SHAPE),
                "label": tfds.features.ClassLabel(names=["ant", "bee", "cow"]),
            }
            return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

        def _split_generators(self, dl_manager):
            return {"train": examples(7, 0), "test": examples(5, 1)}

        def _generate_examples(self):
            raise NotImplementedError

    place = tmp_path_factory.mktemp("prepared")
    Tiny(data_dir=place, file_format="array_record").download_and_prepare()
    return place


@pytest.fixture
def copy(prepared, tmp_path):
    """A copy that a test may spoil."""
    shutil.copytree(prepared / "tiny", tmp_path / "copy" / "tiny")
    return tmp_path / "copy"


def edit(path, change):
    facts = json.loads(path.read_text())
    change(facts)
    path.write_text(json.dumps(facts))


def test_reads_it_without_tensorflow(prepared):
    dataset = load("tfds:tiny", data_dir=prepared)
    assert dataset.name == "tfds:tiny" and dataset.class_names == ("ant", "bee", "cow")
    assert dataset.train_images.shape == (7, *SHAPE) and dataset.test_images.shape == (5, *SHAPE)
    assert sorted(dataset.train_labels.tolist()) == [0, 0, 0, 1, 1, 2, 2]
    by_bytes = {image.tobytes(): index % 3 for index, image in enumerate(example_images(7, 0))}
    found = {image.tobytes(): label for image, label in zip(dataset.train_images, dataset.train_labels, strict=True)}
    assert found == by_bytes  # prepared sets are shuffled: each image still has its label
    folder = prepared / "tiny" / "1.0.0"
    assert dataset.source == f"tfds:tiny: prepared by tensorflow-datasets in {folder} (splits train and test)"
    assert "tensorflow" not in sys.modules


@pytest.mark.parametrize("how", ["TFDS_DATA_DIR", "SSM_DATA_DIR", "home"])
def test_places(prepared, tmp_path, monkeypatch, how):
    if how == "home":
        shutil.copytree(prepared, tmp_path / "home" / "tensorflow_datasets")
    else:
        monkeypatch.setenv(how, str(prepared))
    assert len(load("tfds:tiny").train_images) == 7


def test_not_prepared(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    with pytest.raises(MissingFilesError, match="tfds:nothing: no prepared data set") as error:
        load("tfds:nothing")
    for text in (str(tmp_path / "nothing"), "dataset_info.json", "home/tensorflow_datasets", "array_record"):
        assert text in str(error.value)


def test_newest_version(copy):
    for version in ("1.0.10", "1.0.9"):
        shutil.copytree(copy / "tiny" / "1.0.0", copy / "tiny" / version)
    assert find_prepared("tiny", [copy]) == copy / "tiny" / "1.0.10"


def test_configurations(copy):
    (copy / "two" / "big").mkdir(parents=True)
    shutil.copytree(copy / "tiny" / "1.0.0", copy / "two" / "small" / "1.0.0")
    assert find_prepared("two", [copy]) == copy / "two" / "small" / "1.0.0"
    shutil.copytree(copy / "tiny" / "1.0.0", copy / "two" / "big" / "1.0.0")
    with pytest.raises(DataError, match="several configurations, expected one of: two/big, two/small"):
        find_prepared("two", [copy])
    assert find_prepared("two/big", [copy]) == copy / "two" / "big" / "1.0.0"


def test_validation_stands_in_for_test(copy):
    folder = copy / "tiny" / "1.0.0"

    def rename(facts):
        facts["splits"][1]["name"] = "validation"

    edit(folder / "dataset_info.json", rename)
    (folder / "tiny-test.array_record-00000-of-00001").rename(folder / "tiny-validation.array_record-00000-of-00001")
    dataset = read_prepared(folder, name="tiny")
    assert len(dataset.test_images) == 5 and dataset.source.endswith("(splits train and validation)")


def test_no_test_split(copy):
    folder = copy / "tiny" / "1.0.0"
    edit(folder / "dataset_info.json", lambda facts: facts["splits"].pop())
    with pytest.raises(DataError, match=r"1\.0\.0: splits are train, expected train and test"):
        read_prepared(folder, name="tiny")


def test_images_of_several_sizes(copy):
    folder = copy / "tiny" / "1.0.0"

    def unknown_height(facts):
        image = facts["featuresDict"]["features"]["image"]["image"]
        image["shape"]["dimensions"][0] = "-1"

    edit(folder / "features.json", unknown_height)
    with pytest.raises(DataError, match=r"images are uint8 \(None, 5, 3\), expected uint8 of one size"):
        read_prepared(folder, name="tiny")


def test_not_a_classification_set(copy):
    folder = copy / "tiny" / "1.0.0"
    edit(folder / "features.json", lambda facts: facts["featuresDict"]["features"].pop("label"))
    with pytest.raises(DataError, match="features are image, expected an image classification set"):
        read_prepared(folder, name="tiny")


def test_other_file_format(copy):
    folder = copy / "tiny" / "1.0.0"
    edit(folder / "dataset_info.json", lambda facts: facts.update(fileFormat="tfrecord"))
    with pytest.raises(DataError, match=r"prepared as tfrecord, .* expected array_record"):
        read_prepared(folder, name="tiny")
    edit(folder / "dataset_info.json", lambda facts: facts.pop("fileFormat"))  # how older versions say it
    with pytest.raises(DataError, match="prepared as tfrecord"):
        read_prepared(folder, name="tiny")
    (folder / "dataset_info.json").write_text("[]")
    with pytest.raises(DataError, match=r"dataset_info\.json: can't be read .* expected JSON"):
        read_prepared(folder, name="tiny")


def test_a_shard_is_absent(copy):
    folder = copy / "tiny" / "1.0.0"
    (folder / "tiny-test.array_record-00000-of-00001").unlink()
    with pytest.raises(DataError, match=r"1\.0\.0: can't be read"):
        read_prepared(folder, name="tiny")


def test_missing_packages(prepared, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in ("PIL", "array_record") else real(name)
    )
    with pytest.raises(DataError, match="pip install array_record pillow"):
        load("tfds:tiny", data_dir=prepared)


def test_a_named_set_is_found_prepared(copy, monkeypatch):
    shutil.move(copy / "tiny", copy / "mnist")
    for path in (copy / "mnist" / "1.0.0").glob("tiny-*"):
        path.rename(path.with_name(path.name.replace("tiny", "mnist")))
    edit(copy / "mnist" / "1.0.0" / "dataset_info.json", lambda facts: facts.update(name="mnist"))
    for dataset in (load("mnist", data_dir=copy), load("auto", data_dir=copy)):
        assert dataset.name == "mnist" and "prepared by tensorflow-datasets" in dataset.source


def test_importing_tfds_is_avoided_unless_needed():
    import subprocess

    code = "import sys; from ssm.data import load; load('auto'); print('tensorflow_datasets' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
