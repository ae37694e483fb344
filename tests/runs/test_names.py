import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ssm.errors import LeftOut, UserError
from ssm.files import read_json, write_json
from ssm.recipes.config import Config, resolve
from ssm.recipes.presets import NEUTRAL, named_settings
from ssm.runs.folder import open_run
from ssm.runs.initial import config_of
from ssm.runs.names import config_hash, differences, member_key, run_folder, run_name
from ssm.runs.reader import FinishedRun, find_finished, read_finished
from ssm.runs.sweep import by_point, records
from tests.support.runs import Crash, content, crashing, run_config, same_content, short

RESULTS = Path(__file__).resolve().parents[2] / "experiments" / "results"
PUBLISHED = sorted(path.parent for path in RESULTS.glob("*/summary.json"))
OLDER = json.loads(Path(__file__).with_name("older_configurations.json").read_text())
"""Configurations of runs that earlier versions made on MNIST, by the names that these gave them."""
OLD = "0123456789"
"""What stands for the hash in the name that an earlier version gave."""


def resolved(method="signed", preset="paper", **overrides):
    """Return the configuration of a command for the FCN on MNIST."""
    return resolve(
        model="fcn", method=method, preset=preset, dataset="mnist", samples=60_000, overrides=overrides
    ).as_dict()


SETTINGS = resolved()


def written(folder, name):
    """Return a folder with an earlier version's run in it, of which there is the configuration."""
    (folder / name).mkdir()
    write_json(folder / name / "config.json", OLDER[name])
    return folder


def older(folder):
    """Give a run's folder the name of an earlier version."""
    return folder.rename(folder.with_name(folder.name[:-10] + OLD)), folder.name


def test_hash_is_known_and_blind_to_the_order_of_keys():
    # printf '{"a":1,"b":[0.5,"x"]}' | sha256sum
    assert config_hash({"b": (np.float64(0.5), "x"), "a": 1}) == "d9dda6d0c6"
    assert config_hash({"a": 1, "b": [0.5, "x"]}) == "d9dda6d0c6"
    assert config_hash({"a": 2, "b": [0.5, "x"]}) != "d9dda6d0c6"
    assert run_name(dict(reversed(SETTINGS.items()))) == run_name(SETTINGS)
    assert run_name(SETTINGS) == f"fcn-signed-elus-{config_hash(SETTINGS)}"
    assert member_key(SETTINGS, 3) == f"{config_hash(SETTINGS)}/3"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ({"preset": "default"}, "fcn-signed-elus-f7f77f1afe"),  # README's
        ({}, "fcn-signed-elus-f7ee8b7149"),
        ({"init": "he"}, "fcn-signed-he-407be0fc42"),
        ({"init": "xavier"}, "fcn-signed-xavier-bdc8475276"),
        ({"method": "binary"}, "fcn-binary-elus-df45326064"),
    ],
)
def test_the_first_versions_runs_have_the_names_it_gave_them(command, name, tmp_path):
    assert run_name(resolved(**command)) == name
    assert len(OLDER[name]) == 24
    assert run_folder(written(tmp_path, name), resolved(**command)) == tmp_path / name
    assert run_folder(RESULTS, resolved(**command)) == RESULTS / name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ({"preset": "default", "method": "binary"}, "fcn-binary-elus-694d3e8cef"),
        ({"preset": "sinn1"}, "fcn-signed-elus-92cce74195"),
        ({"preset": "sinn2"}, "fcn-signed-elus-f90c262ab5"),
        ({"score_scale": "elus"}, "fcn-signed-elus-ae7fc7e15f"),
        ({"init": "he", "weight_distribution": "uniform"}, "fcn-signed-he-81814342fa"),
    ],
)
def test_runs_whose_names_hold_all_settings_are_found(command, name, tmp_path):
    assert run_name(resolved(**command)) != name and len(OLDER[name]) == 36
    assert run_folder(written(tmp_path, name), resolved(**command)) == tmp_path / name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ({"method": "baseline", "init": "elu"}, "fcn-baseline-elu-d5515c9830"),
        ({"method": "baseline", "init": "he"}, "fcn-baseline-he-2af03e9d38"),
        ({"method": "baseline", "init": "xavier"}, "fcn-baseline-xavier-3f2ad892c3"),
        ({"order": "fixed_by_seed"}, "fcn-signed-elus-5fd14e18dc"),
        ({"preset": "default", "method": "binary"}, "fcn-binary-elus-1f0e9eee0a"),
        ({"preset": "sinn1"}, "fcn-signed-elus-99f60cdf02"),
        ({"preset": "sinn2"}, "fcn-signed-elus-3485f05c81"),
        ({"score_scale": "elus"}, "fcn-signed-elus-e81bc30ce7"),
        ({"init": "he", "weight_distribution": "uniform"}, "fcn-signed-he-ca30855298"),
    ],
)
def test_newer_runs_have_the_names_that_they_would_get_today(command, name):
    assert run_name(resolved(**command)) == name and run_folder(RESULTS, resolved(**command)) == RESULTS / name


def test_there_are_published_runs_of_every_kind():
    assert sorted({len(read_json(folder / "config.json")) for folder in PUBLISHED}) == [36, 45, 46]


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_every_published_run_is_known_again_and_not_trained_anew(folder, tmp_path):
    shutil.copytree(folder, tmp_path / folder.name)
    check_known_again(tmp_path, folder.name)


@pytest.mark.parametrize("name", OLDER)
def test_so_is_a_run_that_an_earlier_version_published(name, tmp_path):
    shutil.copytree(RESULTS / "fcn-signed-he-407be0fc42", tmp_path / name)
    write_json(tmp_path / name / "config.json", OLDER[name])
    check_known_again(tmp_path, name)


def check_known_again(out, name):
    """Check that a folder's published run is found by its configuration, gets no seeds, and stays as it is."""
    before = {path: path.read_bytes() for path in out.rglob("*.*")}
    published = read_finished(out / name)
    run = open_run(out, config=config_of(published).as_dict(), environment={"device": "another"})
    assert run.folder == out / name
    assert run.finished_seeds() == published.seeds and run.missing_seeds(published.seeds) == []
    with pytest.raises(UserError, match="is a published run, without its history.csv: no seeds can be added"):
        run.missing_seeds([*published.seeds, 999])
    with pytest.raises(UserError, match="is a published run"):
        run.add_seeds(
            history_rows=[], finals=[{"seed": 999, "test_accuracy": 0.5, "remaining_weights": 0.5}], masks={}
        )
    assert {path: path.read_bytes() for path in out.rglob("*.*")} == before


def test_every_option_that_the_first_version_lacked_has_a_neutral_value():
    names = {field.name for field in dataclasses.fields(Config)}
    assert set(NEUTRAL) <= names
    assert sorted(names - set(NEUTRAL)) == sorted(OLDER["fcn-signed-elus-f7f77f1afe"])


def test_an_option_that_is_added_renames_nothing_unless_it_is_used(tmp_path, monkeypatch):
    name = run_name(SETTINGS)
    old = open_run(tmp_path, config=SETTINGS, environment={})
    assert run_name({**SETTINGS, "shift": ""}) != name
    monkeypatch.setitem(NEUTRAL, "shift", "")
    assert run_name({**SETTINGS, "shift": ""}) == name and member_key({**SETTINGS, "shift": ""}, 1)[:10] in name
    assert run_name({**SETTINGS, "shift": "x"}) != name
    assert differences(SETTINGS, {**SETTINGS, "shift": ""}) == []
    assert differences(SETTINGS, {**SETTINGS, "shift": "x"}) == ["shift"]
    assert open_run(tmp_path, config={**SETTINGS, "shift": ""}, environment={}).folder == old.folder
    assert open_run(tmp_path, config={**SETTINGS, "shift": "x"}, environment={}).folder != old.folder


def test_the_whole_configuration_is_recorded(tmp_path):
    run = open_run(tmp_path, config=SETTINGS, environment={})
    assert read_json(run.folder / "config.json") == SETTINGS and len(SETTINGS) > len(named_settings(SETTINGS)) == 24


def test_a_later_versions_option_is_passed_over_where_it_was_neutral(tmp_path, monkeypatch):
    with monkeypatch.context() as later:
        later.setitem(NEUTRAL, "shift", "")
        plain, special = (
            open_run(tmp_path, config={**SETTINGS, "shift": shift}, environment={}).folder for shift in ("", "x")
        )
    assert open_run(tmp_path, config=SETTINGS, environment={}).folder == plain
    assert config_of(FinishedRun(plain, read_json(plain / "config.json"), {})).as_dict() == SETTINGS
    with pytest.raises(UserError, match=r"config.json has options that this version does not know: shift; use the"):
        config_of(FinishedRun(special, read_json(special / "config.json"), {}))
    shutil.rmtree(plain)
    assert run_folder(tmp_path, SETTINGS) == plain != special
    with pytest.raises(UserError, match=r"holds another configuration \(shift differ\)"):
        open_run(tmp_path, config=SETTINGS, environment={}, folder=special)


def test_numbers_mean_the_same_however_they_are_written(tmp_path):
    run = open_run(tmp_path, config=SETTINGS, environment={})
    assert run_folder(tmp_path, SETTINGS | {"decay_steps": float(SETTINGS["decay_steps"])}) == run.folder
    assert run_name(SETTINGS | {"width": 1}) == run_name(SETTINGS)


def test_the_name_of_today_goes_before_an_older_one(tmp_path):
    folder, name = older(open_run(tmp_path, config=SETTINGS, environment={}).folder)
    assert run_folder(tmp_path, SETTINGS) == folder
    (tmp_path / name).mkdir()  # with nothing in it
    assert run_folder(tmp_path, SETTINGS) == folder
    shutil.copy(folder / "config.json", tmp_path / name)
    assert run_folder(tmp_path, SETTINGS) == tmp_path / name


def test_a_copy_under_another_name_is_not_the_run(tmp_path):
    folder, name = older(open_run(tmp_path, config=SETTINGS, environment={}).folder)
    folder.rename(tmp_path / f"{name}-backup")
    assert run_folder(tmp_path, SETTINGS) == tmp_path / name


@pytest.mark.parametrize("text", ["{", "[]", '"x"', ""])
def test_a_damaged_configuration_is_one_message(tmp_path, text):
    folder = open_run(tmp_path, config=SETTINGS, environment={}).folder
    (folder / "config.json").write_text(text)
    with pytest.raises(UserError, match=rf"{folder.name}/config\.json is damaged: not "):
        open_run(tmp_path, config=SETTINGS, environment={})
    folder, _ = older(folder)
    with pytest.warns(LeftOut, match=rf"{folder.name} is left out, .*/config\.json is damaged: not "):
        assert run_folder(tmp_path, SETTINGS).name == run_name(SETTINGS)
    assert open_run(tmp_path, config=resolved(init="he"), environment={}).finished_seeds() == []


def test_of_a_run_and_its_published_form_under_an_older_name_the_larger_is_read(tmp_path):
    published = RESULTS / "fcn-signed-he-407be0fc42"
    shutil.copytree(published, tmp_path / "a" / f"fcn-signed-he-{OLD}")
    shutil.copytree(published, tmp_path / "b" / published.name)
    shutil.rmtree(tmp_path / "b" / published.name / "masks")
    (run,) = find_finished([tmp_path / "b", tmp_path / "a"])
    assert run.name == f"fcn-signed-he-{OLD}"


@pytest.mark.slow
def test_an_older_folder_is_resumed(digits, tmp_path):
    config = short(digits)
    whole = run_config(config, digits, [0, 3], out=tmp_path / "whole")
    with pytest.raises(Crash):
        run_config(config, digits, [0, 3], out=tmp_path, **crashing(2))
    name = whole.folder.name
    folder, _ = older(tmp_path / name)
    logged = []
    run = run_config(config, digits, [0, 3], out=tmp_path, log=logged.append)
    assert any(line.startswith("resuming 2 seeds after epoch") for line in logged)
    assert run.folder == folder and not (tmp_path / name).exists()
    assert run.finished_seeds() == [0, 3] and not list(folder.glob("checkpoints/*"))
    same_content(content(whole), content(run))
    point = {"learning_rate": config.learning_rate}
    rows = records([point], [config], tmp_path, [0, 3, 9])
    assert [(row["seed"], row["run"]) for row in rows] == [(0, folder.name), (3, folder.name)]
    assert by_point(rows, ["learning_rate"])[0]["run"] == folder.name
    write_json(folder / "summary.json", {})  # it would be read
    run = run_config(config, digits, [5], out=tmp_path, fresh=True)
    assert run.folder == folder and run.finished_seeds() == [5] and not (tmp_path / name).exists()
    assert json.loads((folder / "config.json").read_text()) == config.as_dict()
