"""Tables as Markdown, LaTeX or CSV."""

import csv
import io
from collections.abc import Sequence

from paper.tables.table import Table

# Their order does not matter: each character is replaced once.
_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def markdown(tables: Sequence[Table]) -> str:
    """Return tables as Markdown, rounded for reading, each with its notes; shared notes come last."""
    parts = []
    for table in tables:
        rows = [[column.title for column in table.columns], ["---"] * len(table.columns), *table.cells()]
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        parts += [f"### {table.title}\n", "\n".join(lines) + "\n", *(f"{note}\n" for note in table.notes)]
    return "\n".join([*parts, *(f"{note}\n" for note in _common(tables))])


def latex(tables: Sequence[Table]) -> str:
    r"""Return tables as LaTeX floats, as wide as the text; the document needs the packages booktabs and graphicx."""
    parts = ["% \\usepackage{booktabs, graphicx}\n"]
    for table in tables:
        lines = [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{escape(table.title)}}}"]
        lines += [rf"\label{{tab:ssm-{table.name}}}", r"\resizebox{\textwidth}{!}{%"]
        lines += [rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}", r"\toprule"]
        lines += [_row([column.title for column in table.columns]), r"\midrule"]
        for row, new in zip(table.cells(), table.breaks(), strict=True):
            lines += [r"\midrule"] * new + [_row(row)]
        lines += [r"\bottomrule", r"\end{tabular}%", "}"]
        lines += [rf"\par\smallskip{{\footnotesize {escape(note)}\par}}" for note in table.notes]
        parts.append("\n".join([*lines, r"\end{table}"]) + "\n")
    return "\n".join([*parts, *(f"\\noindent{{\\footnotesize {escape(note)}\\par}}\n" for note in _common(tables))])


def comma_separated(tables: Sequence[Table]) -> str:
    """Return tables as one CSV, not rounded: a column for every key of any record, empty for unknown values.

    Several values of a key stand with spaces between them.
    """
    keys = dict.fromkeys(key for table in tables for record in table.records for key in record)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, ["table", *keys], lineterminator="\n", restval="")
    writer.writeheader()
    for table in tables:
        for record in table.records:
            cells = {key: " ".join(value) if isinstance(value, list) else value for key, value in record.items()}
            writer.writerow({"table": table.name, **cells})
    return buffer.getvalue()


FORMATS = {"markdown": markdown, "latex": latex, "csv": comma_separated}


def escape(text: str) -> str:
    """Return text with LaTeX's special characters escaped."""
    return "".join(_LATEX.get(character, character) for character in text)


def _row(cells: Sequence[str]) -> str:
    line = " & ".join(map(escape, cells)) + r" \\"
    # LaTeX would read a bracket or a star after the previous row as its option.
    return f"{{}}{line}" if line.startswith(("[", "*")) else line


def _common(tables: Sequence[Table]) -> list[str]:
    return list(dict.fromkeys(table.common for table in tables if table.common))
