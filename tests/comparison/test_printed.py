import numpy as np
import pytest

from comparison.printed import ROWS, rows
from ssm.recipes.build import build
from ssm.recipes.config import resolve
from ssm.runs.estimate import count_masked
from tests.support.summaries import put

LARGE = ("resnet18", "vgg19", "wrn22_2")  # tests/models/test_literature.py counts them, too


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LARGE else [])
        for name in sorted({one.model for one in ROWS})
    ],
)
def test_weights_are_counted(model):
    for method, counted in {one.method: one.counted for one in ROWS if one.model == model and one.method}.items():
        given = {"model": model, "method": method, "preset": "published", "dataset": "cifar10", "samples": 50_000}
        net = build(resolve(**given, overrides={"method_options": "exempt="}))  # layers that it leaves out, too
        assert count_masked(net, np.zeros((1, 32, 32, 3), np.float32)) == counted


def test_a_row_is_not_run_until_it_is(tmp_path):
    head, *lines = rows(tmp_path)
    assert {line[head.index("here %")] for line in lines} == {"not run", "no recipe"}
    put(tmp_path / "vgg19-force-he-0123456789", preset="published")
    put(tmp_path / "vgg19-granet-he-0123456789", preset="default")
    here = {line[0]: line[head.index("here %")] for line in rows(tmp_path)[1:]}
    assert here["FORCE"] == "97.58" and here["GraNet"] == "not run"
