"""The directions of the code's imports, lazy ones included: they may not change by accident."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LEVELS = (
    {
        "errors",
        "files",
        "lazy",
        "paths",
        "trees",
        "ternary",
        "thresholds",
        "initializers",
        "losses",
        "optim",
        "plateau",
        "data",
    },
    {"learners", "ops"},
    {"supermask", "models"},
    {"training"},
    {"recipes"},
    {"runs"},
    {"export"},
    {"analysis"},
    {"viz"},
)
"""Packages and modules of ssm: each may import its own level and those before it."""
FILES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in (ROOT / "ssm").rglob("*.py")}
MODULES = {name.removesuffix(".__init__"): path for name, path in FILES.items()}


def imported(path: Path) -> set[str]:
    """The modules of ssm that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ssm":
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {one if one in MODULES else node.module for one in full}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name in MODULES}
    return names


def level(module: str) -> int:
    return next(number for number, names in enumerate(LEVELS) if module.split(".")[1] in names)


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"ssm"}))
def test_imports_point_down(module):
    upwards = [name for name in imported(MODULES[module]) if name != "ssm" and level(name) > level(module)]
    assert not upwards


def test_there_is_no_circle():
    arrows = {module: imported(path) - {module, "ssm"} for module, path in MODULES.items() if module != "ssm"}
    while leaves := [module for module, targets in arrows.items() if not targets & arrows.keys()]:
        for module in leaves:
            del arrows[module]
    assert not arrows


def test_the_top_has_few_files():
    assert len(list((ROOT / "ssm").glob("*.py"))) <= 12


def test_the_training_step_is_five_files_from_the_program():
    way = ["ssm.runs.run", "ssm.training.loop", "ssm.training.epoch", "ssm.training.step"]
    assert way[0] in imported(ROOT / "experiments" / "train.py")
    for module, after in pairwise(way):
        assert after in imported(MODULES[module])
    assert "def training_step(" in MODULES[way[-1]].read_text(encoding="utf-8")


def test_only_experiments_know_the_paper():
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "paper"), path


def test_cached_values_are_known():
    """Each is tested under a trace (test_traced.py, test_build.py), as a new one must be."""
    cached = {
        f"{module}:{getattr(node, 'name', 'call')}"
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.Call)
        for one in (node.decorator_list if isinstance(node, ast.FunctionDef) else [node.func])
        if ast.unparse(one).split("(")[0].split(".")[-1] in ("cache", "cached_property", "lru_cache")
    }
    assert cached == {
        "ssm.export.artifact:_kernels",
        "ssm.export.artifact:compiled",
        "ssm.export.artifact:variables",
        "ssm.export.flax_module:_initialise",
        "ssm.export.flax_module:call",  # its decorator's arguments
        "ssm.training.epoch:epoch_of",  # a program's compiled epochs, by sizes
        "ssm.training.epoch:jitted_epoch",
        "ssm.runs.job:call",  # make_task, make_data
        "ssm.runs.job:task",
    }
