"""What a Flax module can do, it can do inside a Supermask: every row of the tables of docs/flax.md."""

import pytest

from tests.support.flax_features import DOCUMENT, FEATURES, MODULES, ONLY, REFUSED, refused_row, row, tried
from tests.support.quick import quick

TEXT = DOCUMENT.read_text(encoding="utf-8")
QUICK = ("Dense", "own collection `frozen`")
"""Modules that are tried in every run of the tests; the others take a minute to compile."""
CASES = [
    pytest.param(feature, name, marks=[] if name in QUICK or ONLY.get(feature) == (name,) else pytest.mark.slow)
    for feature in FEATURES
    for name in MODULES
]


def cell(feature: str, name: str) -> str:
    """Return the document's cell of a feature and a module."""
    cells = next(line for line in TEXT.splitlines() if line.startswith(f"| {feature} |")).strip("|").split("|")
    return cells[1 + list(MODULES).index(name)].strip()


def test_the_document_has_a_row_for_every_feature_and_a_column_for_every_module():
    header = row("feature", *MODULES)
    assert header in TEXT
    table = TEXT[TEXT.index(header) :].splitlines()
    assert [line.split(" | ")[0].removeprefix("| ") for line in table[2 : 2 + len(FEATURES)]] == list(FEATURES)


@pytest.mark.parametrize(("feature", "name"), quick(CASES, 15))
def test_what_the_module_does_the_supermask_does(feature, name):
    assert tried(feature, name) == cell(feature, name)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_so(name):
    assert refused_row(name) in TEXT.splitlines()
