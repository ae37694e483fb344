import csv
import io
import re

import pytest

from paper.tables.results import every_run
from paper.tables.table import Table, plain
from paper.tables.write import comma_separated, escape, latex, markdown
from tests.support.summaries import summary


def test_markdown(rows):
    table = every_run({"name": summary(failed=[{"seed": 3, "epoch": 7}])}, rows)
    lines = markdown([table]).splitlines()
    assert lines[0] == "### All runs, beside the paper's rows where there are such"
    assert lines[8] == (
        "| fcn | signed | elus | default | mnist | 100 | 50 (+1 failed) "
        "| 97.58 [97.40, 97.75] | 97.48 [97.3, 97.7] | +0.10 | yes | <0.001 "
        "| 3.56 [3.50, 3.63] | 3.77 [3.7, 3.8] | -0.21 | no | <0.001 | 0.41 | 1.27 | name |"
    )
    assert lines[4].startswith("| fcn | baseline | he |  | mnist |  | not run |  | 97.40 [97.3, 97.5] |")
    assert len({line.count("|") for line in lines[2:11]}) == 1
    assert any("estimate" in line for line in lines[12:])


def test_a_note_that_tables_share_is_given_once():
    tables = [
        Table(name=name, title=name, columns=[plain("x|y", "x")], records=[{"x": 1}], notes=["own"], common="all")
        for name in ("a", "b")
    ]
    assert markdown(tables) == (
        "### a\n\n| x\\|y |\n| --- |\n| 1 |\n\nown\n\n### b\n\n| x\\|y |\n| --- |\n| 1 |\n\nown\n\nall\n"
    )
    assert latex(tables).count(r"\footnotesize all\par") == 1


def test_csv(rows):
    text = comma_separated([every_run({"name": summary()}, rows)])
    read = list(csv.DictReader(io.StringIO(text)))
    assert text.startswith("table,model,method,init,preset,dataset,epochs,runs,failed,accuracy_mean,")
    assert len(read) == 7
    assert float(read[4]["accuracy_q05"]) == pytest.approx(97.4)
    assert (read[4]["runs"], read[4]["status"], read[4]["accuracy_overlap"]) == ("50", "run", "yes")
    assert (read[0]["runs"], read[0]["status"], read[0]["paper_accuracy_mean"]) == ("", "not run", "97.4")


def test_csv_of_tables_has_the_columns_of_all():
    tables = [
        Table(name="a", title="", columns=[], records=[{"x": 1 / 3}]),
        Table(name="b", title="", columns=[], records=[{"y": None, "x": 2}]),
    ]
    assert comma_separated(tables) == f"table,x,y\na,{1 / 3},\nb,2,\n"


def test_latex():
    columns = [plain("share %", "x"), plain("of_what", "y")]
    rows = [
        {"x": "<0.1 & more", "y": "a", "g": 1},
        {"x": "[1, 2]", "y": None, "g": 1},
        {"x": "50\\{", "y": "#1", "g": 2},
    ]
    table = Table(name="t", title="A $ title", columns=columns, records=rows, notes=["See ~5^2_x"], group="g")
    assert (
        latex([table])
        == r"""% \usepackage{booktabs, graphicx}

\begin{table}[htbp]
\centering
\caption{A \$ title}
\label{tab:ssm-t}
\resizebox{\textwidth}{!}{%
\begin{tabular}{ll}
\toprule
share \% & of\_what \\
\midrule
\textless{}0.1 \& more & a \\
{}[1, 2] &  \\
\midrule
50\textbackslash{}\{ & \#1 \\
\bottomrule
\end{tabular}%
}
\par\smallskip{\footnotesize See \textasciitilde{}5\textasciicircum{}2\_x\par}
\end{table}
"""
    )


def test_every_character_that_latex_takes_for_its_own_is_escaped():
    text = escape("".join(map(chr, range(32, 127))))
    bare = re.sub(r"\\(text[a-z]+\{\}|[&%$#_{}])", "", text)
    assert not set(bare) & set("\\&%$#_{}~^<>|")
