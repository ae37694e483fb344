import pytest

from paper.tables import find_runs, read_paper
from ssm.errors import UserError
from tests.support.summaries import put


def test_runs_are_found_in_folders_and_as_folders(tmp_path):
    put(tmp_path / "results" / "one", losses={0: [1.0]})
    put(tmp_path / "results" / "two", losses={0: [1.0]}, runs=5)
    (tmp_path / "results" / "unfinished").mkdir()
    (tmp_path / "results" / "README.md").write_text("")
    put(tmp_path / "runs" / "two", losses={0: [1.0], 1: [1.0]}, runs=50)
    found = find_runs([tmp_path / "results", tmp_path / "runs" / "two"])
    assert {name: one["runs"] for name, one in found.items()} == {"one": 50, "two": 50}


def test_folders_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(UserError, match="absent cannot be read"):
        find_runs([tmp_path / "absent"])
    with pytest.raises(UserError, match="holds no run with finished seeds"):
        find_runs([tmp_path])
    (tmp_path / "paper.json").write_text('{"rows": [{}]}')
    with pytest.raises(UserError, match=r"paper\.json is damaged"):
        read_paper(tmp_path / "paper.json")
