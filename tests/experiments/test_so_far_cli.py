import pytest

from ssm import data
from ssm.files import read_json, write_json
from ssm.recipes.config import resolve
from ssm.runs.reader import read_finished
from tests.support.programs import Place
from tests.support.runs import Crash, crashing, run_config


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, tmp_path)


def test_what_a_stopped_run_has_is_printed_beside_the_paper_and_kept(place):
    digits = data.load("mnist5k")
    values = {"width": 0.05, "epochs": 9, "batch_size": 500, "validation": 500}
    named = {"model": "fcn", "method": "signed", "preset": "default", "dataset": "mnist5k"}
    config = resolve(**named, samples=len(digits.train_labels), overrides=values)
    with pytest.raises(Crash):
        run_config(config, digits, [0, 1], out=place.here, **crashing(3))
    (run,) = place.here.glob("fcn-*")
    (noted,) = read_json(run / "environment.json")
    noted["environment"]["processor"] = "another machine"
    write_json(run / "environment.json", [noted])
    done = place.program("so_far.py", run)
    assert done.returncode == 0, done.stderr
    (results,) = set(place.here.glob("fcn-*")) - {run}
    lines = done.stdout.splitlines()
    assert lines[0] == f"seeds 0 to 1 of {run.name}, after 2 of 9 epochs" and f"results: {results}" in lines
    assert any(line.endswith("2 seeds, 2 epochs") for line in lines)
    assert read_json(results / "environment.json") == [noted | {"seeds": [0, 1]}]
    assert read_finished(results).seeds == [0, 1] and not (run / "summary.json").exists()
    refused = place.refusal("so_far.py", results)
    assert f"so_far.py: {results} has no checkpoint" in refused
    refused = place.refusal("so_far.py", place.here / "none")
    assert refused == f"so_far.py: {place.here / 'none'} holds no run: no config.json in it\n"
