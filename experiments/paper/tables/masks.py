"""What the FCN's first masks have in common over the runs, beside the counts in the paper's caption."""

from collections.abc import Mapping
from typing import Any

from paper.tables import cells
from paper.tables.printed import WITHOUT_ROW, Record, dataset
from paper.tables.table import Column, Table, plain
from ssm.runs.reader import FinishedRun

PAPER_RUNS, PAPER_MOST = 50, 100
PAPER: Mapping[str, Record] = {
    "signed": {"hidden_inputs": 284, "almost_hidden_inputs": 364, "always_hidden": 54.11, "first_remaining": 2.8},
    "binary": {"hidden_inputs": 144, "almost_hidden_inputs": 260, "always_hidden": 43.63, "first_remaining": 2.8},
}
"""fig:bin_mask_comparison, over 50 runs: inputs hidden in all, inputs with at most 100 remaining weights in
all together, and per cent of the weights: hidden in all, and remaining on average (100 - 97.2)."""


def first_masks(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the counts of fig:bin_mask_comparison for every ELUS run of the FCN that keeps masks."""
    records = []
    for method, printed in PAPER.items():
        theirs = {f"paper_{key}": value for key, value in printed.items()}
        found = [_counted(name, run) for name, run in runs.items() if _fits(run, method)]
        found.sort(key=lambda record: (-record["runs"], record["changed"]))
        blank = {
            "method": method,
            "status": "not run",
            "preset": None,
            "runs": None,
            "failed": 0,
            "epochs": None,
            "paper_epochs": 100,
        }
        records += [blank | theirs | one for one in found] or [blank | theirs]
    return Table(
        name="masks",
        title="FCN, ELUS: first masks of all runs together (fig:bin_mask_comparison)",
        columns=[
            plain("method", "method"),
            Column("preset", cells.preset),
            Column("epochs", cells.epochs),
            Column("runs", cells.runs),
            *_beside("inputs hidden in all", "hidden_inputs", "{:.0f}"),
            *_beside("inputs with at most 2 weights a run", "almost_hidden_inputs", "{:.0f}"),
            *_beside("weights hidden in all %", "always_hidden", "{:.2f}"),
            *_beside("remaining in the layer %", "first_remaining", "{:.2f}"),
            plain("run", "run"),
        ],
        records=records,
        notes=(
            f"The paper counts over {PAPER_RUNS} runs, and at most {PAPER_MOST} weights of an input in all of them, "
            "that is 2 a run. With fewer runs more is hidden in all of them: only rows of 50 runs can be compared.",
        ),
        group="method",
    )


def _fits(run: Mapping[str, Any], method: str) -> bool:
    """Return whether a run has the net of the paper's figure: MNIST, ELUS, signed constants, the usual width."""
    finished: FinishedRun | None = run.get("finished")
    named = (run["model"], run["method"], run["init"], dataset(run)) == ("fcn", method, "elus", "mnist")
    usual = (run["width"], run["score_scale"], run["weight_distribution"]) == (1, "xavier", "signed_constant")
    return named and usual and run["preset"] not in WITHOUT_ROW and finished is not None and finished.has_masks


def _counted(name: str, run: Mapping[str, Any]) -> Record:
    from ssm.analysis import always_hidden, hidden_inputs  # loads SciPy, which other tables do not need

    mask = run["finished"].masks()["Dense_0"]
    seeds = len(mask)
    return {
        "status": "run",
        "preset": run["preset"],
        "changed": run.get("changed", []),
        "epochs": run["epochs"],
        "runs": seeds,
        "hidden_inputs": hidden_inputs(mask),
        "almost_hidden_inputs": hidden_inputs(mask, most=round(seeds * PAPER_MOST / PAPER_RUNS)),
        "always_hidden": 100 * always_hidden(mask),
        "first_remaining": 100 * float((mask != 0).mean()),
        "run": name,
    }


def _beside(title: str, key: str, form: str) -> list[Column]:
    def show(record: Record, name: str) -> str:
        value = record.get(name)
        return "" if value is None else form.format(value)

    return [
        Column(title, lambda record: show(record, key)),
        Column("paper", lambda record: show(record, f"paper_{key}")),
    ]
