"""Every method of the paper's literature table on one protocol, and what came of it.

- python experiments/literature.py                          FCN on MNIST, three densities, 5 seeds: hours on a CPU
- python experiments/literature.py --methods=rigl,granet    some of the methods
- python experiments/literature.py --block=ways             ways of the signed Supermask to a density
- python experiments/literature.py --model=conv2 --epochs=12 --seeds=1 --densities=0.1,0.006 --search=off
- python experiments/literature.py --report                 the table and figures of what is finished

The learning rate of each method is the best of three for one seed on 5,000 held-out training images.  What is finished
is skipped, what was stopped is resumed; several processes may share the work, each with its own --methods.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from comparison.common import Common, at_least_one_seed
from comparison.entries import BLOCKS, Entry
from options import prepare
from ssm.errors import UserError
from ssm.runs.program import run_program

PUBLISHED = Path(__file__).resolve().parent / "results" / "literature"
"""Summaries of runs that were made before: they count as finished in the table, and their searches, too."""
TABLES = Path(__file__).resolve().parents[1] / "docs" / "results"
"""Tables that were made before: they know the nets of runs that were published without their weights."""
RATES = (1 / 3, 1.0, 3.0)
SEARCHED = 0.1
"""Density of the search for a learning rate, which is that of all densities."""
HELD_OUT = 5000
"""Training images that the search tests on; of a small data set, a quarter."""


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Train all methods on one protocol, and compare them."""

    model: Annotated[str, tyro.conf.arg(metavar="NAME")] = "fcn"
    """fcn, conv2, conv4 or conv6."""
    dataset: str = "auto"
    """mnist or cifar10 as the model has it; mnist5k for a first look."""
    block: Literal["a", "b", "ways"] = "a"
    """Without batch normalisation, with ELU; with it after every layer, and ReLU; or, as a, the ways of the signed
    Supermask to a density."""
    methods: str = "all"
    """Which methods, by the name that --method has, or by number in the table: rigl,granet or 0,3."""
    densities: Annotated[str | None, tyro.conf.arg(help_behavior_hint="(default: the block's)")] = None
    """Shares of the weights that are kept, of the methods that have such a dial: 0.1,0.036,0.01 in blocks a and b,
    0.1,0.036,0.02,0.01,0.005 in ways."""
    seeds: int = 5
    """Seeds of each row."""
    epochs: int = 100
    """Epochs of every run, the search's included."""
    out: Path = Path("runs/literature")
    """Folder of the runs."""
    search: Literal["first", "only", "off"] = "first"
    """First the best of three learning rates; only that; or the protocol's own rate, where a search takes too long, and
    a third of it where no seed is left at that."""


class Plan:
    """The runs of a comparison: of each method first the search for its rate, then every density."""

    def __init__(self, options: Options):
        from comparison.runs import Runs

        dataset = options.data_of(options.model)
        base = options.shared(model=options.model, preset="protocol", dataset=dataset, epochs=options.epochs)
        self.options, self.runs = options, Runs(base, PUBLISHED)
        self.dial = shares(options.densities or BLOCKS[options.block].densities)

    def config(self, entry: Entry, density: float | None, **more: Any) -> Any:
        """Return the configuration of an entry at a density, with other options as named."""
        return self.runs.config(method=entry.method, **(entry.overrides(density) | more))

    def search(self, entry: Entry) -> list[Any]:
        """Return the configurations of an entry's search: if it has a dial, at one density, whatever others are run."""
        density = SEARCHED if entry.dial else None
        rate = self.config(entry, density).learning_rate
        held_out = min(HELD_OUT, len(self.runs.dataset.train_labels) // 4)
        return [self.config(entry, density, learning_rate=factor * rate, validation=held_out) for factor in RATES]

    def rate(self, entry: Entry, density: float | None) -> float | None:
        """Return the learning rate of an entry at a density; None before its search is finished.

        Without a search it is the protocol's own, or a third of it after a run of which no seed was left.
        """
        if self.options.search != "off":
            return self.best_rate(entry)
        own = self.config(entry, density)
        run = self.runs.finished(own, self.options.seeds)
        return own.learning_rate if run is None or run.seeds else RATES[0] * own.learning_rate

    def best_rate(self, entry: Entry) -> float | None:
        """Return the learning rate of the best run of a finished search; None of one that isn't.

        Of rates that are equally good the protocol's own, or else the smaller one.
        """
        found = []
        for factor, config in zip(RATES, self.search(entry), strict=True):
            run = self.runs.finished(config)
            if run is None:
                return None
            accuracy = run.summary["test_accuracy"]["values"].get("0", 0.0)  # a seed that was excluded has none
            found.append((accuracy, factor == 1, -config.learning_rate))
        return -max(found)[2]

    def train(self, entry: Entry, density: float | None, seeds: Sequence[int]) -> None:
        """Train an entry at a density, at another rate again if the first one left no seed."""
        rate = self.rate(entry, density)
        self.runs.train([self.config(entry, density, learning_rate=rate)], seeds)
        if (other := self.rate(entry, density)) != rate:
            self.runs.train([self.config(entry, density, learning_rate=other)], seeds)

    def densities(self, entry: Entry) -> list[float | None]:
        """Return the densities at which an entry is run: None is its own."""
        return list(self.dial) if entry.dial else [None]


def shares(text: str) -> list[float]:
    """Return the densities that a text names; raises UserError for what are none."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < share <= 1 for share in found):
        raise UserError(f"--densities={text}: give shares above 0 and at most 1, as 0.1,0.036,0.01.")
    return found


def chosen(options: Options) -> list[tuple[int, Entry]]:
    """Return the entries that the options name, with their number in the table."""
    every = list(enumerate(BLOCKS[options.block].entries))
    if options.methods == "all":
        return every
    wanted = [name.strip() for name in options.methods.split(",")]
    known = {entry.method for _, entry in every} | {str(number) for number, _ in every}
    if unknown := [name for name in wanted if name not in known]:
        raise UserError(f"--methods names {', '.join(unknown)}; known are {', '.join(sorted(known))}.")
    return [(number, entry) for number, entry in every if entry.method in wanted or str(number) in wanted]


def check(options: Options) -> None:
    """Raise UserError where a block is not for a model, or there is nothing to run."""
    at_least_one_seed(options.seeds)
    if options.block == "ways" and options.model != "fcn":
        raise UserError(f"--block=ways has the settings of the FCN; leave out --model={options.model}.")


def report(plan: Plan) -> None:
    """Write and print the table of all rows, whether they are finished or not."""
    from comparison.records import idle_seconds, known_nets, record, with_differences
    from comparison.report import table, write

    options, records = plan.options, []
    name = f"literature-{options.model}-{options.block}"
    known = known_nets(TABLES / f"{name}.csv", options.table_folder / f"{name}.csv")
    timed = (plan.runs.base.dataset, options.model, options.width) == ("mnist", "fcn", 1) and options.block != "b"
    seconds = idle_seconds(PUBLISHED.parent / "learners-cpu.txt") if timed else None  # of just these runs
    for number, entry in enumerate(BLOCKS[options.block].entries):
        for density in plan.densities(entry):
            rate = plan.rate(entry, density)
            run = None if rate is None else plan.runs.finished(plan.config(entry, density, learning_rate=rate))
            records.append(record(number, entry, density, run, known, seconds=seconds, dataset=plan.runs.dataset))
    records = with_differences(records, BLOCKS[options.block].reference)
    write(records, options.table_folder, name)
    print(f"results: {options.table_folder / name}.md\n\n{table(records)}")


def main(options: Options) -> None:
    check(options)
    plan = Plan(options)
    prepare(plan.runs.base)
    rows = chosen(options)
    if not options.report:
        for _, entry in rows if options.search != "off" else ():
            print(f"search: {entry.name}", flush=True)
            plan.runs.train(plan.search(entry), [0])
        for seeds in () if options.search == "only" else sorted({min(2, options.seeds), options.seeds}):
            for number in range(len(plan.dial)):
                for _, entry in rows:
                    densities = plan.densities(entry)
                    if number < len(densities):
                        print(f"{entry.name}, density {densities[number]}, {seeds} seeds", flush=True)
                        plan.train(entry, densities[number], list(range(seeds)))
    report(plan)


if __name__ == "__main__":
    run_program(main, Options, description=__doc__, trains=True)
