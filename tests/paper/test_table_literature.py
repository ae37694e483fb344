from paper.tables.literature import literature
from tests.support.summaries import summary


def test_other_methods_stand_as_printed_and_our_rows_as_not_run(paper):
    table = literature({}, paper)
    titles = [column.title for column in table.columns]
    rows = [dict(zip(titles, row, strict=True)) for row in table.cells()]
    assert len(rows) == 18
    assert [row["runs"] for row in rows] == ["literature"] * 16 + ["not run"] * 2
    assert rows[0]["remaining weights (printed)"] == "0.25 M - 2.1 M"
    assert rows[7]["initial weights (printed)"] == "26.8 M"
    assert rows[16]["remaining weights (printed)"] == "0.061 M"


def test_our_runs_stand_beside_the_papers_own_rows(paper):
    accuracy = {"mean": 0.81, "q05": 0.8, "q95": 0.82, "std": 0.001, "values": {"0": 0.81}}
    run = summary(model="conv8", dataset="cifar10", weights=5_275_840, test_accuracy=accuracy)
    table = literature({"mine": run}, paper)
    assert len(table.records) == 18
    assert table.cells()[16][4:] == [
        *("5.3 M", "0.061 M", "50", "100"),
        *("81.00", "+0.09", "5.28 M", "0.188 M", "mine"),
    ]
