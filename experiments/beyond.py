"""`--preset=best` beside `default`, the paper's, and the dense net: fronts of the FCN, and what each part brings.

- python experiments/beyond.py                 train what is missing, and write table and figure: hours on a CPU
- python experiments/beyond.py --rows=0:8      some of the rows, by number; several processes may share them
- python experiments/beyond.py --model=conv2   a Conv net, one seed a row: of it no front, one point of each recipe
- python experiments/beyond.py --report        the table and the figure of what is finished

A front is accuracy against the share of the weights that is left, by the weight decay.  Every run is tested on the test
set after its last epoch.  What is finished is skipped, what was stopped is resumed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from comparison.common import Common, at_least_one_seed
from comparison.recipes import recipes
from options import prepare
from ssm.errors import UserError
from ssm.runs.program import run_program

PUBLISHED = Path(__file__).resolve().parent / "results" / "beyond"
"""Summaries of runs that were made before: they count as finished."""


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Train a net by `best`, by `default`, and what is between them."""

    model: Literal["fcn", "conv2", "conv4", "conv6", "conv8"] = "fcn"
    """The net."""
    rows: Annotated[str, tyro.conf.arg(metavar="A:B", help_behavior_hint="(default: all)")] = ":"
    """Rows of the table to train, from 0: 3:5 is rows 3 and 4."""
    dataset: str = "auto"
    """mnist or cifar10 as the model has it; mnist5k for a first look."""
    epochs: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: the presets')")] = None
    """Epochs of every run, for a first look."""
    seeds: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: 10 or 3 by row, Conv nets 1)")
    ] = None
    """Seeds of every row."""
    out: Path = Path("runs/beyond")
    """Folder of the runs."""


def row_range(text: str, count: int) -> range:
    """Return the numbers of the rows that `A:B` names; raises UserError where it names none."""
    try:
        first, last = (int(end) if end else None for end in text.split(":"))
    except ValueError:
        raise UserError(f"--rows={text}: give the first and the last row plus one, as 3:5, of 0:{count}.") from None
    if not (named := range(count)[first:last]):
        raise UserError(f"--rows={text} names no row; there are 0:{count}.")
    return named


def main(options: Options) -> None:
    from comparison.fronts import record, table, write
    from comparison.runs import Runs

    if options.seeds is not None:
        at_least_one_seed(options.seeds)
    every = recipes(options.model)
    named = row_range(options.rows, len(every))
    runs = Runs(options.shared(model=options.model, dataset=options.data_of(options.model)), PUBLISHED)
    shorter = {} if options.epochs is None else {"epochs": options.epochs}
    prepare(runs.base)
    configs = [runs.config(preset=row.preset, method=row.method, **{**row.options, **shorter}) for row in every]
    for number in () if options.report else named:
        row, config = every[number], configs[number]
        print(f"row {number}: {row.name}, weight decay {config.weight_decay:.3g}", flush=True)
        runs.train([config], range(options.seeds or row.seeds))
    records = [
        record(row, config.weight_decay, runs.finished(config)) for row, config in zip(every, configs, strict=True)
    ]
    name = "beyond" if options.model == "fcn" else f"beyond-{options.model}"
    write(records, options.table_folder, name)
    print(f"results: {options.table_folder / name}.md\n\n{table(records)}")


if __name__ == "__main__":
    run_program(main, Options, description=__doc__, trains=True)
