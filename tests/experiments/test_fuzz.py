"""The program that damages artefacts: as a user runs it, and that it would see what it looks for."""

import importlib
import os
import random
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ssm.errors import UserError
from ssm.export import load
from tests.experiments.test_train_cli import ROOT, Place
from tests.support.artifacts import tiny


@pytest.fixture(scope="module")
def program():
    """The program as a module; it finds the mutations beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "experiments")
        yield importlib.import_module("fuzz")
    for name in ("fuzz", "fuzz_mutations"):
        sys.modules.pop(name, None)


def test_no_mutation_is_taken_for_a_net(tmp_path):
    tiny().save(tmp_path / "net.ssm")
    done = Place(tmp_path, tmp_path).program("fuzz.py", "--mutations=300", "net.ssm")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"$ python {ROOT}/experiments/fuzz.py --mutations=300 net.ssm"
    assert lines[1].startswith("300 mutations of 5 artefacts")
    (whole,) = [re.split(r"\s+", line) for line in lines if line.startswith("all ")]
    refused, loaded, other = (int(cell.replace(",", "")) for cell in whole[1:])
    assert refused + loaded == 300 and other == 0 and refused > 200 and loaded > 10
    assert not (tmp_path / "fuzz").exists()


def test_files_that_cannot_be_mutated_are_said(program, tmp_path):
    for options, message in (({"files": (tmp_path / "no.ssm",)}, "does not exist"), ({"mutations": 0}, "1 or more")):
        with pytest.raises(UserError, match=message):
            program.main(program.Options(**options))


def test_every_mutation_but_a_few_changes_the_file(program):
    from fuzz_mutations import MUTATIONS, examples  # pyright: ignore[reportMissingImports]

    files = examples()
    rng = random.Random(0)
    for name, mutate in MUTATIONS.items():
        made = [mutate(rng.choice(files), rng.choice(files), rng) for _ in range(30)]
        assert sum(data not in files for data in made) > (5 if name == "exchange" else 15), name
        assert mutate(files[0], files[1], random.Random(3)) == mutate(files[0], files[1], random.Random(3))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (KeyError("a"), "KeyError: 'a'"),
        (MemoryError(), "MemoryError"),
        (BaseException("panic"), "BaseException: panic"),
        (0.2, r"0\.\d s"),
        (bytearray, r"[\d,]+ bytes of memory"),
        (np.full((4, 3), 2, np.int8), "layer Dense_0 is not ternary"),
        (np.ones((4, 2), np.int8), "layers are not those of the architecture"),
    ],
)
def test_what_is_neither_refused_nor_sound_is_a_fault(program, fault, said, tmp_path, monkeypatch):
    monkeypatch.setattr(program, "MOST_SECONDS", 0.1)
    monkeypatch.setattr(program, "MOST_MEMORY", 8 << 20)
    path = tmp_path / "net.ssm"
    tiny().save(path)

    def loader(path):
        if isinstance(fault, BaseException):
            raise fault
        if isinstance(fault, float):
            end = time.process_time() + fault
            while time.process_time() < end:
                pass
        elif fault is bytearray:
            bytearray(16 << 20)
        else:
            net = load(path)
            net.layers["Dense_0"] = net.layers["Dense_0"]._replace(ternary=fault)
            return net
        return load(path)

    tally = program.Tally()
    tally.take("bits", path, loader)
    ((text, data),) = tally.faults
    assert re.match(f"bits: {said}", text) and data == path.read_bytes()
    assert re.search(r"^all +0 +0 +1$", "\n".join(tally.lines()), re.MULTILINE)


def test_a_sound_net_and_a_refused_one_are_no_faults(program, tmp_path):
    tiny().save(path := tmp_path / "net.ssm")
    tally = program.Tally()
    tally.take("bits", path, load)
    path.write_bytes(b"something else")
    tally.take("bits", path, load)
    assert not tally.faults and tally.loaded == {"bits": 1}
    assert tally.refused == {("bits", "not an artefact"): 1}
    with pytest.raises(UserError):
        load(path)


def test_a_process_that_dies_is_a_fault_and_its_file_is_kept(program, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "work", _dies)
    monkeypatch.setattr(sys, "argv", ["fuzz.py"])
    with pytest.raises(SystemExit, match="1"):
        program.main(program.Options(mutations=5, out=tmp_path / "out"))
    assert "crash or hang: the process ended with status 3" in capsys.readouterr().out
    assert (tmp_path / "out" / "fault-00.ssm").read_bytes() == b"deadly"


def _dies(files, options, folder: Path, connection):
    (folder / "mutated.ssm").write_bytes(b"deadly")
    os._exit(3)
