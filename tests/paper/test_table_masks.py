import numpy as np
import pytest

from paper import tables
from paper.tables import find_runs
from paper.tables.masks import first_masks
from ssm.errors import LeftOut
from ssm.runs.reader import DamagedRun
from tests.support.summaries import put


def masks(seed):
    mask = np.zeros((784, 300), np.int8)
    mask[0, :3] = 1  # in every run; input 1 in the first run alone, and one weight
    mask[1, 0] = -1 if seed == 0 else 0
    return {"Dense_0": mask}


def test_counts_by_hand(tmp_path):
    values = {"test_accuracy": {"mean": 0.9, "q05": None, "q95": None, "std": None, "values": {"0": 0.9, "1": 0.9}}}
    put(tmp_path / "signed", masks={0: masks(0), 1: masks(1)}, config={}, **values)
    put(tmp_path / "baseline", method="baseline", config={}, **values)
    table = first_masks(find_runs([tmp_path]))
    assert table.cells() == [
        ["signed", "default", "100", "2", "782", "284", "783", "364", "100.00", "54.11", "0.00", "2.80", "signed"],
        ["binary", "", "", "not run", "", "144", "", "260", "", "43.63", "", "2.80", ""],
    ]
    record = table.records[0]
    assert record["always_hidden"] == 100 * (784 * 300 - 4) / (784 * 300)
    assert record["first_remaining"] == 100 * 7 / (2 * 784 * 300)


def test_a_damaged_mask_leaves_its_run_out(tmp_path):
    put(tmp_path / "good", masks={0: masks(0)}, config={})
    half = put(tmp_path / "half", masks={0: masks(0)}, config={"decay": "coupled"})
    (half / "masks" / "seed-0000.npz").write_bytes(b"PK")
    with pytest.warns(LeftOut, match=r"half is left out: .*seed-0000.npz"):
        (table,) = tables.make(["masks"], find_runs([tmp_path]), {})
    assert [record.get("run") for record in table.records] == ["good", None]
    with pytest.raises(DamagedRun, match=r"seed-0000\.npz"):
        tables.make(["masks"], find_runs([half]), {})
