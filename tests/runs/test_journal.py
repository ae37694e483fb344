from ssm.runs.journal import JOURNAL, Journal, read_journal


def test_every_line_is_there_as_soon_as_it_is_written(tmp_path):
    journal = Journal(tmp_path, print)
    journal("epoch", seed=3, epoch=1, test_accuracy=0.5, train_loss=float("nan"))
    (found,) = read_journal(tmp_path)
    assert found.pop("time") > 1.7e9
    assert found == {"event": "epoch", "process": 0, "seed": 3, "epoch": 1, "test_accuracy": 0.5, "train_loss": None}
    Journal(tmp_path, print)("end")  # another start of the program appends
    assert [event["event"] for event in read_journal(tmp_path)] == ["epoch", "end"]


def test_a_line_that_a_crash_cut_off_is_passed_over(tmp_path):
    Journal(tmp_path, print)("start", seeds=[1, 2])
    with open(tmp_path / JOURNAL, "a") as file:
        file.write('[1]\n{"event": "epo')
    Journal(tmp_path, print)("end")
    assert [event["event"] for event in read_journal(tmp_path)] == ["start", "end"]


def test_a_journal_that_can_not_be_written_is_said_once(tmp_path):
    logged = []
    journal = Journal(tmp_path / "gone", logged.append)
    journal("start")
    journal("end")
    (line,) = logged
    assert "cannot be written (No such file or directory); training continues" in line
    assert list(read_journal(tmp_path / "gone")) == []
