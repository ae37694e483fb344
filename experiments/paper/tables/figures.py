"""The figures in the paper's tables: how each is read from a run, or why it is unknown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from paper.tables.printed import METHODS, Record, dataset
from ssm.runs.history import read_history
from ssm.runs.reader import FinishedRun, reading
from ssm.runs.statistics import interval

Summary = Mapping[str, Any]

# The parts of an environment, and of a configuration, that determine the time of an epoch.
_MACHINE = ("backend", "device", "devices", "processor", "precision", "seed_loop", "matmul_precision")


class Found(NamedTuple):
    """A figure's mean, q05, q95 and std over the seeds, each None if unknown, or why the figure is unknown."""

    statistics: Mapping[str, float | None] | None
    why: str = "unknown"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a run's `Summary`, and the paper's.

    name, title: in records, and for readers.  theirs: its key in the paper's rows, which are in per cent, or losses.
    find: returns ours, which times `factor` has their unit.  digits: decimals in print.  lacks: whether a run's folder
    may lack the data for it, so that a record needs the reason.
    """

    name: str
    title: str
    theirs: str
    find: Callable[[Summary], Found]
    factor: float = 100
    digits: int = 2
    lacks: bool = False


def final_loss(summary: Summary) -> Found:
    """Return the seeds' test loss after their last epoch, from history.csv, or a published run's curve.csv."""
    run: FinishedRun | None = summary.get("finished")
    if run is None:
        return Found(None)
    if (run.folder / "history.csv").exists():
        with reading(run.folder):
            last = {row["seed"]: row.get("test_loss") for row in read_history(run.folder / "history.csv")}
        losses = [loss for seed in run.seeds if (loss := last.get(seed)) is not None]
        return Found(interval(losses)._asdict() if losses else None)
    if not (run.folder / "curve.csv").exists():
        return Found(None)
    points = run.curve()
    # Published before curves had it; or seeds ended at different epochs, so that the last row is not over all seeds.
    if not points or "test_loss:mean" not in points[-1] or points[-1]["seeds"] != len(run.seeds):
        return Found(None)
    return Found({key: points[-1][f"test_loss:{key}"] for key in ("mean", "q05", "q95")} | {"std": None})


def compressed(summary: Summary) -> Found:
    """Return the share of memory that csr saves against dense float32, over the seeds whose masks were kept."""
    from ssm.analysis import compression  # loads SciPy's sparse arrays, which other tables do not need

    run: FinishedRun | None = summary.get("finished")
    if run is None or not run.has_masks:
        return Found(None, "no masks kept")
    # A seed at a time: fifty of the largest nets at once would take gigabytes.
    one = ({layer: mask[0] for layer, mask in run.masks([seed]).items()} for seed in run.mask_seeds)
    return Found(interval([compression(masks) for masks in one])._asdict())


def extra_time(summary: Summary) -> Found:
    """Return by what share a masked run's epoch takes longer than its `baseline`'s, see `paired`."""
    baseline = summary.get("baseline")
    if baseline is None:
        return Found(None, "no baseline on this machine")
    masked, dense = (one["seconds_per_epoch_and_seed"]["median"] for one in (summary, baseline))
    if not masked or not dense:
        return Found(None)
    return Found({"mean": masked / dense - 1, "q05": None, "q95": None, "std": None})


def paired(runs: Mapping[str, Summary]) -> dict[str, Record]:
    """Return the runs, each masked one with the `baseline` whose time it is compared with, if there is one.

    That is the dense run of the same model, width, data set and batch size, on the same machine in the same way; of
    several, the one with the most seeds.  Its initialisation does not matter for its time.
    """
    dense = [summary for summary in runs.values() if summary["method"] == "baseline"]
    found = {}
    for name, summary in runs.items():
        machine = _machine(summary) if summary["method"] in METHODS else None
        same = [one for one in dense if machine is not None and _machine(one) == machine]
        best = max(same, key=lambda one: one["runs"], default=None)
        found[name] = dict(summary) if best is None else {**summary, "baseline": best}
    return found


def _machine(summary: Summary) -> Record | None:
    """Return what must be equal for two runs' times to be comparable; None where that is unknown or not unique."""
    run: FinishedRun | None = summary.get("finished")
    if run is None:
        return None
    machines = [{key: recorded.get(key) for key in _MACHINE} for seeds, recorded in run.environments() if seeds]
    if not machines or any(machine != machines[0] for machine in machines):
        return None
    work = {"model": summary["model"], "width": summary["width"], "dataset": dataset(summary)}
    return machines[0] | work | {"batch_size": run.setting("batch_size")}


ACCURACY = Figure(
    name="accuracy",
    title="accuracy %",
    theirs="test_accuracy_percent",
    find=lambda summary: Found(summary["test_accuracy"]),
)
REMAINING = Figure(
    name="remaining",
    title="remaining %",
    theirs="remaining_weights_percent",
    find=lambda summary: Found(summary["remaining_weights"]),
)
LOSS = Figure(name="loss", title="test loss", theirs="test_loss", find=final_loss, factor=1, digits=4, lacks=True)
COMPRESSION = Figure(
    name="compression", title="compression by csr %", theirs="compression_percent", find=compressed, lacks=True
)
EXTRA_TIME = Figure(
    name="extra_time",
    title="additional time / epoch %",
    theirs="extra_seconds_per_epoch_percent",
    find=extra_time,
    lacks=True,
)
FIGURES: Sequence[Figure] = (ACCURACY, REMAINING)
"""The figures in every run's summary."""
