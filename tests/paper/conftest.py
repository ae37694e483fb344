from pathlib import Path

import pytest

from paper.tables import read_printed

PAPER = Path(__file__).resolve().parents[2] / "experiments" / "paper" / "paper.json"


@pytest.fixture(scope="session")
def paper():
    return read_printed(PAPER)


@pytest.fixture(scope="session")
def rows(paper):
    return paper["rows"]
