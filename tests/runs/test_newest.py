import os

import pytest
from tests.support.made_runs import make_run

from ssm.runs.newest import newest_masked
from ssm.runs.folder import mask_path


def at(folder, seconds):
    for seed in (0, 1):
        os.utime(mask_path(folder, seed), (seconds, seconds))
    return folder


@pytest.fixture
def root(tmp_path):
    at(make_run(tmp_path / "runs", epochs=1), 100)
    at(make_run(tmp_path / "runs", epochs=2), 300)
    at(make_run(tmp_path / "runs", epochs=3), 200)
    at(make_run(tmp_path / "runs", model="conv2"), 400)
    make_run(tmp_path / "runs", method="baseline")
    at(make_run(tmp_path / "results", method="binary"), 900)
    return tmp_path


def test_the_last_one_of_the_first_folder(root):
    found = newest_masked([root / "runs", root / "results"], model="fcn")
    assert found is not None and found.setting("epochs") == 2
    found = newest_masked([root / "runs", root / "results"], model="conv2")
    assert found is not None and found.setting("model") == "conv2"


def test_folders_without_one_are_passed_over(root):
    (root / "empty").mkdir()
    found = newest_masked([root / "missing", root / "empty", root / "results", root / "runs"], model="fcn")
    assert found is not None and found.setting("method") == "binary"
    assert newest_masked([root / "missing", root / "runs"], model="resnet20") is None


def test_published_without_masks_counts_for_nothing(root):
    for path in (root / "results").glob("*/masks/*"):
        path.unlink()
    assert newest_masked([root / "results"], model="fcn") is None
