"""The notebook, run from a clean kernel of this very Python in a folder of its own; git has it without outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from ipykernel.kernelspec import write_kernel_spec
from nbclient import NotebookClient

import ssm
from tests.support.made_runs import make_run

PACKAGES = Path(ssm.__file__).parents[1]
NOTEBOOK = Path(__file__).parents[2] / "experiments" / "notebooks" / "mask_inspection.ipynb"
SECONDS = 120  # for a cell, on a machine that has other things to do


def executed(folder, monkeypatch, **environment):
    """Return the notebook after it has been run in a folder; a cell that fails raises."""
    # The first kernels that Jupyter looks at: python3 is this Python, whatever the user has installed beside.
    write_kernel_spec(folder / "jupyter" / "kernels" / "python3")
    places = {"JUPYTER_PATH": "jupyter", "JUPYTER_CONFIG_DIR": "settings", "JUPYTER_RUNTIME_DIR": "runtime"}
    for name, place in {**places, "JUPYTER_DATA_DIR": "data", "IPYTHONDIR": "ipython"}.items():
        monkeypatch.setenv(name, str(folder / place))
    monkeypatch.setenv("PYTHONPATH", str(PACKAGES), prepend=os.pathsep)
    for name in ("RUN", "EPOCHS", "SEEDS"):
        monkeypatch.delenv(f"SSM_NOTEBOOK_{name}", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(f"SSM_NOTEBOOK_{name}", str(value))
    where = folder / "work"
    where.mkdir()
    (where / "pyproject.toml").touch()  # the notebook's root is here, wherever temporary folders are
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(
        notebook, kernel_name="python3", timeout=SECONDS, resources={"metadata": {"path": str(where)}}
    )
    return client.execute(), where


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def text(notebook):
    found = outputs(notebook)
    return "".join(one.text if one.output_type == "stream" else one.data.get("text/markdown", "") for one in found)


def check_outputs(notebook, warning=None):
    found = outputs(notebook)
    assert not [one for one in found if one.output_type == "error"]
    stderr = [one.text for one in found if one.get("name") == "stderr"]
    assert not [text for text in stderr if warning is None or warning not in text]
    return sum("image/png" in one.get("data", {}) for one in found)


@pytest.mark.slow
def test_it_trains_a_run_and_looks_at_it(tmp_path, monkeypatch):
    notebook, where = executed(tmp_path, monkeypatch, EPOCHS=1, SEEDS=2)
    assert check_outputs(notebook) == 11
    (folder,) = (where / "runs").iterdir()
    assert len(list((folder / "masks").iterdir())) == 2
    said = text(notebook)
    assert f"{folder}: signed Supermask, MNIST (5,000 digits); 2 seeds, 1 epoch" in said
    tested = json.loads((folder / "summary.json").read_text())["test_accuracy"]["values"]["0"]
    assert f"| nothing | {100 * tested:.2f} % |" in said  # without JAX the net is as good as in training


@pytest.mark.slow
def test_any_other_run_will_do(tmp_path, monkeypatch):
    layers = {"Dense_0": (784, 12), "Dense_1": (12, 4), "Dense_2": (4, 10)}
    run = make_run(tmp_path, seeds=1, method="binary", dataset="mnist", layers=layers, width=0.04)
    (tmp_path / "empty").mkdir()
    for name in ("SSM_DATA_DIR", "SSM_CACHE_DIR", "TFDS_DATA_DIR"):  # so its images are not available
        monkeypatch.setenv(name, str(tmp_path / "empty"))
    monkeypatch.setenv("SSM_OFFLINE", "1")
    notebook, where = executed(tmp_path, monkeypatch, RUN=run)
    assert check_outputs(notebook, warning="keeps no hash of its frozen weights") == 10  # as older versions' runs
    for said in ("masks of one seed only", f"{run}: binary Supermask", "in place of mnist, which is not available"):
        assert said in text(notebook)
    assert not (where / "runs").exists()


def test_git_has_no_outputs():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = notebook["cells"]
    assert [cell["id"] for cell in cells] == [str(place) for place in range(len(cells))]
    for cell in cells:
        assert cell["cell_type"] == "markdown" or (cell["outputs"] == [] and cell["execution_count"] is None)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    done = subprocess.run([sys.executable, "-m", "nbstripout", "--verify", NOTEBOOK], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
