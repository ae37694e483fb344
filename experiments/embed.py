"""For the documents: what a program prints, or a result file says, between their cog markers (`make results`)."""

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
