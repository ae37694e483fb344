"""The paper's tables of results, each described by its rows, figures and columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paper.tables import cells
from paper.tables.compare import blank, records, row_records
from paper.tables.figures import ACCURACY, COMPRESSION, EXTRA_TIME, FIGURES, LOSS, REMAINING, Figure, paired
from paper.tables.printed import Record, select
from paper.tables.table import HOW, NET, NOTE, RUN, TIME, Column, Table, beside, plain

Runs = Mapping[str, Mapping[str, Any]]
Wanted = Sequence[Mapping[str, Any]]

_CONV = ("conv2", "conv4", "conv6", "conv8")
_WIDTHS = (1, 1.5, 2, 2.5, 3)


@dataclass(frozen=True, kw_only=True)
class Results:
    """A table of results: rows of the paper, and their figures.

    after: returns the records with additions of this table.  columns: stand after the figures.
    """

    title: str
    rows: Wanted
    figures: Sequence[Figure] = FIGURES
    columns: Sequence[Column] = ()
    after: Callable[[list[Record], Record], list[Record]] = lambda found, paper: found
    notes: Sequence[str] = ()


def _dense(model: str, init: str = "elu", **other: Any) -> Record:
    return {"model": model, "method": "baseline", "init": init, **other}


def _signed(model: str, init: str = "elus", **other: Any) -> Record:
    return {"model": model, "method": "signed", "init": init, **other}


def _resnet(model: str, batch_norm: str = "frozen", **other: Any) -> list[Record]:
    """Return the rows of a ResNet: its baseline, and the masked net, which for ResNet110 has more projections."""
    projections = {"projections": 2} if model == "resnet110" else {}
    return [
        _dense(model, batch_norm="affine", **other),
        _signed(model, batch_norm=batch_norm, **projections, **other),
    ]


def _zhou(found: list[Record], paper: Record) -> list[Record]:
    zhou = paper["supermask_literature"]["zhou"]
    known = {"model": "fcn", "method": "Zhou et al.", "init": zhou["fcn_init"], "dataset": "mnist"}
    printed = {"paper_accuracy_mean": zhou["fcn"], "paper_remaining": zhou["remaining_percent"]}
    return [*found, blank(status="literature", **known, **printed)]


def _supermasks(found: list[Record], paper: Record) -> list[Record]:
    """Return the records of Conv nets, the signed ones with the results of other work on Supermasks."""
    work = paper["supermask_literature"]
    for record in found:
        for name in ("zhou", "ramanujan", "diffenderfer"):
            accuracy = work[name].get(record["model"]) if record["method"] == "signed" else None
            record[f"{name}_accuracy"] = accuracy
            record[f"{name}_remaining"] = None if accuracy is None else work[name]["remaining_percent"]
    return found


def _counted(found: list[Record], paper: Record) -> list[Record]:
    """Return the records with our number of remaining weights."""
    for record in found:
        share, weights = record["remaining_mean"], record["weights"]
        record["remaining_weights"] = None if share is None or weights is None else share / 100 * weights
    return found


_COUNTS = (
    Column("remaining weights", lambda record: cells.count(record["remaining_weights"])),
    Column("paper", lambda record: cells.count(record["paper_remaining_weights"])),
)
_SHORT = {"zhou": "Zhou", "ramanujan": "Ram.", "diffenderfer": "Diff."}
_PUBLISHED = tuple(
    plain(f"{figure} %, {short}", f"{name}_{figure}")
    for figure in ("accuracy", "remaining")
    for name, short in _SHORT.items()
)
_COUNT_NOTE = (
    "The paper's printed counts and shares of remaining weights do not always agree: 53530 of the 248624 weights of "
    "ResNet20 are 21.53 %, printed is 21.13 %. Both are given as printed."
)
_EFFICIENCY_NOTE = (
    "Additional time: the median seconds per epoch and seed over those of the baseline of the same net, data and batch "
    "size that the same machine (environment.json) trained in the same way; one machine may be loaded at one time and "
    "idle at another. Compression: what scipy's csr saves against dense float32, over the seeds whose masks were kept."
)

RESULTS: Mapping[str, Results] = {
    "fcn": Results(
        title="FCN: test accuracy, remaining weights and time (tab:fcn_result)",
        rows=[
            *(_dense("fcn", init) for init in ("he", "elu", "xavier")),
            *(_signed("fcn", init) for init in ("he", "elus", "xavier")),
            {"model": "fcn", "method": "binary", "init": "elus"},
            _signed("fcn", score_scale="elus"),
            _signed("fcn", "he", weight_distribution="uniform"),
        ],
        columns=TIME,
        after=_zhou,
        notes=(
            "The rows binary, elus/elus (ELUS scores) and he (uniform) are from the paper's figures and text, not in a "
            "table of it.",
            "Baselines: trained with weight decay 5e-4, as the printed 7e-4 gives 97.0 % (docs/ledger.md, \"The FCN's "
            'dense baseline"); p and overlap say how well that fits.',
        ),
    ),
    "conv": Results(
        title="Conv2 to Conv8: test accuracy and remaining weights (tab:cnn_result)",
        rows=[row for model in _CONV for row in (_dense(model, "he" if model == "conv2" else "elu"), _signed(model))],
        columns=_PUBLISHED,
        after=_supermasks,
        notes=("The paper's baseline of each net is the best of its three, see conv-losses.",),
    ),
    "conv-efficiency": Results(
        title="Signed Supermasks: additional time and compression (tab:conv_eff; of the FCN, the text)",
        rows=[_signed(model) for model in ("fcn", *_CONV)],
        figures=(EXTRA_TIME, COMPRESSION),
        notes=(
            _EFFICIENCY_NOTE,
            "The FCN's time is 'about 5 %' in the text. Masked FCNs train without their dead units here; with all "
            "units, on an idle machine, it is 9 % (docs/speed.md).",
        ),
    ),
    "resnet20": Results(
        title="ResNet20 on CIFAR-10: test accuracy and remaining weights by width (tab:rn20_result)",
        rows=[row for width in _WIDTHS for row in _resnet("resnet20", width=width)],
        columns=_COUNTS,
        after=_counted,
        notes=(_COUNT_NOTE,),
    ),
    "resnet-deep": Results(
        title="ResNet56 and ResNet110 on CIFAR-100: test accuracy and remaining weights (tab:rn56110_result)",
        rows=[*_resnet("resnet56"), *_resnet("resnet110")],
        columns=_COUNTS,
        after=_counted,
        notes=(_COUNT_NOTE,),
    ),
    "resnet-bn": Results(
        title="ResNets with batch normalisation: test accuracy and remaining weights (tab:rn20bn_result)",
        rows=[row for model in ("resnet20", "resnet56", "resnet110") for row in _resnet(model, "affine")],
        columns=_COUNTS,
        after=_counted,
        notes=(_COUNT_NOTE, "The baselines are those of the tables without BN: all have it."),
    ),
    "conv-losses": Results(
        title="Conv2 to Conv8: test accuracy, test loss and time by initialisation (appendix)",
        rows=[
            row
            for model in _CONV
            for row in (
                *(_dense(model, init) for init in ("he", "elu", "xavier")),
                *(_signed(model, init) for init in ("he", "elus", "xavier")),
            )
        ],
        figures=(ACCURACY, LOSS),
        columns=TIME,
    ),
    "resnet-efficiency": Results(
        title="Signed Supermasks, ResNet20: additional time and compression by width (tab:rn_eff)",
        rows=[_signed("resnet20", width=width, batch_norm="frozen") for width in _WIDTHS],
        figures=(EXTRA_TIME, COMPRESSION),
        notes=(_EFFICIENCY_NOTE,),
    ),
}


def results(name: str, runs: Runs, paper: Record) -> Table:
    """Return one of the tables `RESULTS`: every run of each of its rows, or 'not run'."""
    spec = RESULTS[name]
    rows = select(paper["rows"], spec.rows)
    if EXTRA_TIME in spec.figures:
        runs = paired(runs)
    found = spec.after(row_records(runs, rows, figures=spec.figures), paper)
    remarks = [
        f"{row['model']}, {row['method'].replace('_', ' ')}, {row['init']}: {row['note']}"
        for row in rows
        if "note" in row
    ]
    return Table(
        name=name,
        title=spec.title,
        columns=[*NET, *HOW, *(column for figure in spec.figures for column in beside(figure)), *spec.columns, *RUN],
        records=found,
        notes=[*spec.notes, *remarks],
        group="model",
        common=NOTE,
    )


def every_run(runs: Runs, rows: Sequence[Record]) -> Table:
    """Return all runs, including those without a row in the paper, and the FCN's rows that were not run."""
    return Table(
        name="runs",
        title="All runs, beside the paper's rows where there are such",
        columns=[*NET, *HOW, *beside(ACCURACY), *beside(REMAINING), *TIME, *RUN],
        records=records(runs, rows),
        group="model",
        common=NOTE,
    )
