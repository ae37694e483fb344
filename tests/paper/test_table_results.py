import pytest

from paper.tables import TABLES, make
from paper.tables.results import RESULTS, results
from ssm.errors import UserError
from tests.support.summaries import summary

# How many rows each of the paper's tables of results has, one for each net that was trained, and what else we show.
ROWS = {
    "fcn": 6 + 3 + 1,  # binary, other scores and other weights from the text, and Zhou et al.
    "conv": 8,
    "conv-efficiency": 4 + 1,  # the FCN, from the text
    "resnet20": 10,
    "resnet-deep": 4,
    "resnet-bn": 6,
    "conv-losses": 24,
    "resnet-efficiency": 5,
}


def shown(table):
    """Return the text of every row by column; of columns with one title, the first."""
    titles = [column.title for column in table.columns]
    return [{title: row[titles.index(title)] for title in titles} for row in table.cells()]


def row_of(record):
    return tuple(record[key] for key in ("model", "method", "init", "width", "batch_norm", "score_scale"))


@pytest.mark.parametrize("name", RESULTS)
def test_every_row_of_the_paper_appears_once_and_as_not_run(paper, name):
    table = results(name, {}, paper)
    assert len(table.records) == ROWS[name]
    rows = [(*row_of(record), record["weight_distribution"]) for record in table.records]
    assert len(set(rows)) == len(rows)
    assert {row["runs"] for row in shown(table) if row["method"] != "Zhou et al."} == {"not run"}


def test_every_printed_row_is_in_a_table(paper):
    """Each row of paper.json, by its accuracy, in the tables of results taken together."""
    found = set()
    for name in RESULTS:
        found |= {record.get("paper_accuracy_mean") for record in results(name, {}, paper).records}
    assert {row["test_accuracy_percent"]["mean"] for row in paper["rows"]} <= found


def test_a_run_stands_in_every_table_of_its_row(paper):
    runs = {"mine": summary(model="conv2", dataset="cifar10", epochs=12, runs=2, weights=4300992)}
    for name, where in (("conv", 1), ("conv-losses", 4), ("conv-efficiency", 1)):
        table = results(name, runs, paper)
        assert len(table.records) == ROWS[name]
        assert [row["run"] for row in shown(table)].index("mine") == where
        assert shown(table)[where]["epochs"] == "12 of 100"
    efficiency = shown(results("conv-efficiency", runs, paper))[1]
    assert efficiency["additional time / epoch %"] == "no baseline on this machine"
    assert efficiency["compression by csr %"] == "no masks kept"
    assert shown(results("conv-losses", runs, paper))[4]["test loss"] == "unknown"


def test_printed_figures_of_several_tables(paper):
    """Some figures typed from the paper's source."""
    loss = results("conv-losses", {}, paper).records[-1]
    assert [loss[f"paper_loss_{key}"] for key in ("mean", "q05", "q95")] == [0.6360, 0.5957, 0.7147]
    assert [loss[key] for key in ("paper_seconds", "paper_seconds_q05", "paper_seconds_q95")] == [6.68, 6.64, 6.73]
    efficiency = results("conv-efficiency", {}, paper).records
    assert [record["paper_compression_mean"] for record in efficiency] == [92.01, 98.41, 93.82, 95.07, 97.6]
    assert [record["paper_extra_time_mean"] for record in efficiency] == [5, 10.14, 6.02, 6.25, 6.00]
    efficiency = results("resnet-efficiency", {}, paper).records
    assert [record["paper_compression_mean"] for record in efficiency] == [57.65, 76.08, 84.58, 89.13, 91.85]
    assert [record["paper_extra_time_mean"] for record in efficiency] == [3.42, 8.53, 13.69, 14.42, 12.57]
    counts = [record["paper_remaining_weights"] for record in results("resnet-bn", {}, paper).records]
    assert counts == [248624, 37992, 834992, 231769, 1668272, 64663]


def test_the_literature_stands_beside_as_printed(paper):
    fcn = shown(results("fcn", {}, paper))[-1]
    assert (fcn["method"], fcn["init"], fcn["runs"]) == ("Zhou et al.", "Xavier (S.C.)", "literature")
    titles = [column.title for column in results("fcn", {}, paper).columns]
    cells = results("fcn", {}, paper).cells()[-1]
    assert [cell for title, cell in zip(titles, cells, strict=True) if title == "paper"] == ["98.00", "11 - 93", ""]
    conv = [row for row in shown(results("conv", {}, paper)) if row["method"] == "signed"]
    keys = [f"{figure} %, {short}" for figure in ("accuracy", "remaining") for short in ("Zhou", "Ram.", "Diff.")]
    assert [[row[key] for key in keys] for row in conv] == [
        ["66.0", "65", "70", "11 - 93", "10", "10"],
        ["72.5", "74", "79", "11 - 93", "10", "10"],
        ["76.5", "77", "82", "11 - 93", "10", "10"],
        ["", "70", "85", "", "10", "10"],
    ]


def test_remaining_weights_are_counted(paper):
    share = {"mean": 0.25, "q05": 0.2, "q95": 0.3, "std": 0.01, "values": {"0": 0.25}}
    run = summary(model="resnet20", dataset="cifar10", batch_norm="frozen", weights=248624, remaining_weights=share)
    row = shown(results("resnet20", {"mine": run}, paper))[1]
    assert row["remaining weights"] == "62,156"


def test_a_misprint_is_said(paper):
    assert any("conv4, baseline, elu: tab:cnn_result prints 74.50" in note for note in results("conv", {}, paper).notes)


def test_tables_are_made_by_name(paper):
    assert [table.name for table in make(["conv", "fcn", "conv"], {}, paper)] == ["conv", "fcn"]
    with pytest.raises(UserError, match=r"--tables=fnc is not known; choose from: fcn, conv, .*, sinn, runs\."):
        make(["fcn", "fnc"], {}, paper)
    assert len(TABLES) == len(set(TABLES)) == 17
