"""Output of programs and result files for the documents, between their cog markers (`make results`)."""

import ast
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZES = (
    "fcn signed elus mnist default",
    "conv2 signed elus cifar10 default",
    "conv4 signed elus cifar10 default, other loss, staircase",
)


def table(name: str) -> None:
    """Print one of the tables of the runs in experiments/results, without its title."""
    print(_table(name))


def result(name: str) -> None:
    """Print a file of docs/results or experiments/results."""
    print(_read(name))


def trained(name: str) -> None:
    """Print a comparison's table in docs/results without the rows that were not run."""
    print("\n".join(line for line in _read(name).splitlines() if "| not run |" not in line))


def text(name: str) -> None:
    """Print a file of docs/results or experiments/results as it is, between fences."""
    print(f"```text\n{_read(name)}\n```")


def results() -> None:
    """Print the rows of the FCN that were trained to the end: means alone, beside the paper's."""
    head, *rows = _rows(_table("fcn"))
    place = {name: head.index(name) for name in ("model", "method", "init", "preset", "epochs", "runs")}
    accuracy, remaining = head.index("accuracy %"), head.index("remaining %")
    lines = []
    for row in rows:
        if not row[place["runs"]].isdecimal() or not row[place["epochs"]].isdecimal():
            continue  # not run, or "12 of 100" epochs
        method = ", ".join(row[place[name]] for name in ("method", "init", "preset"))
        means = [row[column].split(" ")[0] for column in (accuracy, accuracy + 1, remaining, remaining + 1)]
        lines.append([row[place["model"]], method, *means, row[place["runs"]]])
    _print(["model", "method, init, preset", "accuracy %", "paper", "remaining %", "paper", "seeds"], lines)


def sizes() -> None:
    """Print how large the nets of `SIZES` are as float32 and as a file: means over the seeds."""
    head, *rows = _rows(_read("sizes.md"))
    columns = [head.index(name) for name in ("remaining %", "dense", "file", "dense / file", "seeds")]
    chosen = [next(row for row in rows if row[head.index("run")] == name) for name in SIZES]
    lines = [[row[head.index("run")].split()[0], *(row[column] for column in columns)] for row in chosen]
    _print(["net", "remaining %", "dense, bytes", "file, bytes", "times smaller", "seeds"], lines)


def speed(*variants: str) -> None:
    """Print the median seconds per epoch and seed of these variants in experiments/results/speed-cpu.txt."""
    found = re.findall(r"^(.+?) +minimum .*? median (\S+) .*\((\d+) seeds\)$", _read("speed-cpu.txt"), re.MULTILINE)
    medians = {name: [name, median, seeds] for name, median, seeds in found}
    _print(["variant", "s per epoch and seed", "seeds"], [medians[name] for name in variants])


def code(path: str, first: str, last: str) -> None:
    """Print a Python file from the definition of `first` to that of `last`, between fences."""
    source = (ROOT / path).read_text(encoding="utf-8")
    places = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            begin = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            places[node.name] = begin, node.end_lineno
    lines = source.splitlines()[places[first][0] - 1 : places[last][1]]
    print("\n".join(["```python", *lines, "```"]))


def printed() -> None:
    """Print the paper's literature table, with what is known to be wrong with it."""
    from comparison.printed import rows

    head, *lines = rows(ROOT / "experiments" / "results" / "literature")
    _print(head, lines)


def authors() -> None:
    """Print the curves of the authors' program beside those of our runs with its settings: accuracy / remaining."""
    from ssm.runs.reader import find_finished

    curves = json.loads(_read("authors-curves.json"))["runs"]
    runs = find_finished([ROOT / "experiments" / "results"])
    columns = {}
    for net in ("conv2", "conv4"):
        theirs = next(one["epochs"] for one in curves if one["model"] == net and one["k"] == 3)
        columns[f"{net}, authors"] = [
            f"{100 * one['test_accuracy']:.2f} / {one['remaining_percent']:.2f}" for one in theirs
        ]
        wanted = {"model": net, "method": "signed", "loss": "clipped", "staircase": False, "epochs": len(theirs)}
        ours = next(run for run in runs if all(run.setting(name) == value for name, value in wanted.items()))
        columns[f"{net}, `{ours.folder.name}`"] = [
            f"{100 * row['test_accuracy:mean']:.2f} / {100 * row['remaining_weights:mean']:.2f}" for row in ours.curve()
        ]
    rows = zip(*columns.values(), strict=True)
    _print(["epoch", *columns], [[str(epoch), *row] for epoch, row in enumerate(rows, 1)])


def learner_lines() -> None:
    """Print how many lines of code each learner's file has: without imports, docstrings, comments and empty lines."""
    files = sorted((ROOT / "ssm" / "learners").glob("*.py"))
    counted = {path.stem: _lines_of_code(path) for path in files if path.stem != "__init__"}
    _print(["file", "lines"], [[f"`{name}.py`", str(count)] for name, count in sorted(counted.items())])


def _lines_of_code(path: Path) -> int:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {number for node in ast.walk(tree) for number in _said(node)}
    with tokenize.open(path) as file:
        tokens = list(tokenize.generate_tokens(file.readline))
    kinds = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines = {line for one in tokens if one.type not in kinds for line in range(one.start[0], one.end[0] + 1)}
    return len(lines - said)


def _said(node: ast.AST) -> range:
    """Return the lines of an import or a text that stands by itself."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    if isinstance(node, ast.Import | ast.ImportFrom) or text:
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]
    return range(0)


def figures() -> None:
    """Print the figures in docs/results, in the paper's order, each with its name and the runs that it shows."""
    from paper.figures.gallery import FIGURES

    folder = ROOT / "docs" / "results"
    said = [line for line in (folder / "figures.txt").read_text(encoding="utf-8").splitlines() if line]
    for name in FIGURES:
        if (folder / f"{name}.png").exists():
            runs = next(line.split(": ", 1)[1] for line in said if line.split(":")[0].endswith(f"/{name}.png"))
            print(f"### {name}\n\n![{name}]({name}.png)\n\n{runs[0].upper()}{runs[1:]}.\n")
    print("### Not drawn\n")
    for line in said:
        if ": not drawn: " in line:
            name, _, why = line.partition(": not drawn: ")
            print(f"- `{name}` {why}")


def _table(name: str) -> str:
    command = [sys.executable, str(ROOT / "experiments" / "table.py"), "experiments/results", f"--tables={name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.partition("\n")[2].strip()


def _read(name: str) -> str:
    found = [ROOT / folder / "results" / name for folder in ("docs", "experiments")]
    return next(path for path in found if path.exists()).read_text(encoding="utf-8").strip()


def _rows(markdown: str) -> list[list[str]]:
    """Return the cells of a Markdown table, its head first."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in [lines[0], *lines[2:]]]


def _print(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(row) + " |")
