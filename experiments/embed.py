"""Output of programs and result files for the documents, between their cog markers (`make results`)."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def table(name: str) -> None:
    """Print one of the tables of the runs in experiments/results, without its title."""
    command = [sys.executable, str(ROOT / "experiments" / "table.py"), "experiments/results", f"--tables={name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    _, _, body = done.stdout.partition("\n")
    print(body.strip())


def result(name: str) -> None:
    """Print a file of docs/results or experiments/results."""
    found = [ROOT / folder / "results" / name for folder in ("docs", "experiments")]
    print(next(path for path in found if path.exists()).read_text(encoding="utf-8").strip())


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
