"""The paper's tables of hyperparameters, beside the recipes of our presets."""

from collections.abc import Callable, Mapping
from typing import Any

from paper.tables import cells
from paper.tables.printed import Record
from paper.tables.table import Column, Table, plain
from ssm.recipes.presets import CONV_NETS, MODEL_DATA, recipe

# The captions of the last two are swapped in the paper's source: ours fit the tables' contents.
_TABLES = {
    "settings-baseline": ("tab:learning_param_baseline", "baseline", "FCN and Conv2 to Conv8, baselines"),
    "settings-baseline-resnet": ("tab:learning_param_baseline_rn", "baseline", "ResNets, baselines"),
    "settings-signed": ("tab:learning_param_sisu_rn", "signed", "FCN, Conv2 to Conv8 and ResNet20, signed Supermasks"),
    "settings-signed-resnet": ("tab:learning_param_sisu", "signed", "ResNets, signed Supermasks"),
}
NAMES = tuple(_TABLES)

_SWAPPED = (
    "The two captions of the tables of signed Supermasks are swapped in the paper's source: tab:learning_param_sisu is "
    'captioned "FCN and Conv2 - Conv8" and holds the ResNets, tab:learning_param_sisu_rn is captioned "ResNet models" '
    "and holds the others (docs/ledger.md, row 19)."
)
_OPTIMIZER = (
    "Optimizer: the paper says SGD; its program has Nesterov momentum, and a decay that is not multiplied by the "
    "learning rate (docs/ledger.md, rows 1 and 2), which the preset follows."
)
_PRUNING = (
    "Initial pruning rate: ours is what the preset's threshold hides of its Xavier-uniform scores, in expectation. The "
    "paper's text names those scores too, but its rates of the FCN and Conv2 to Conv8 are what the same threshold "
    "gives with ELUS-uniform scores (docs/ledger.md, row 5)."
)
_DECAY = (
    "Weight decay of the FCN: the printed one does not give the printed accuracy, ours does (docs/ledger.md, row 10)."
)

Value = str | float | None


def settings(name: str, paper: Record) -> Table:
    """Return one of the tables `NAMES`: each setting of the preset `paper` by model, and the printed one."""
    label, method, title = _TABLES[name]
    printed: Mapping[str, Record] = paper["hyperparameters"][label]
    ours = {model: _ours(model, method) for model in printed}
    records = []
    for setting, get in _SETTINGS.items():
        values = {model: (get(ours[model]), get(printed[model])) for model in printed}
        if any(theirs is not None for _, theirs in values.values()):
            records.append(_record(setting, values))
    columns = [plain("setting", "setting")]
    for model in printed:
        columns += _beside(model)
    notes = (_SWAPPED, _OPTIMIZER, _PRUNING) if method == "signed" else (_OPTIMIZER,)
    if method == "baseline" and "fcn" in printed:
        notes += (_DECAY,)
    return Table(
        name=name,
        title=f"Hyperparameters: {title}; the preset paper beside the paper's ({label})",
        columns=[*columns, plain("differs", "differs")],
        records=records,
        notes=notes,
    )


def sinn(paper: Record) -> Table:
    """Return the settings of the presets `sinn1` and `sinn2`, beside the paper's."""
    printed = {f"sinn{number}": values for number, values in paper["sinn"].items()}
    records = []
    for setting in ("learning rate", "weight decay"):
        get = _SETTINGS[setting]
        values = {}
        for preset, theirs in printed.items():
            # One value for all nets, or several to list.
            ours = {get(recipe(model, "signed", preset, MODEL_DATA[model][0])) for model in ("fcn", *CONV_NETS)}
            one = ours.pop() if len(ours) == 1 else ", ".join(sorted(map(_show, ours)))
            values[preset] = (one, get(theirs))
        records.append(_record(setting, values))
    columns = [plain("setting", "setting")]
    for preset in printed:
        columns += _beside(preset)
    return Table(
        name="sinn",
        title="Simple-minded nets: altered hyperparameters of the presets sinn1 and sinn2 beside the paper's "
        "(tab:learning_param_schizo)",
        columns=[*columns, plain("differs", "differs")],
        records=records,
        notes=("All else is the preset paper of signed Supermasks of the FCN and Conv2 to Conv8.",),
    )


def _ours(model: str, method: str) -> Record:
    from paper.tables.nets import hidden_at_first

    values = recipe(model, method, "paper", MODEL_DATA[model][0])
    details = ["Nesterov"] * values["nesterov"] + ["decoupled decay"] * (values["decay"] == "decoupled")
    values["optimizer"] = ", ".join(["SGD", *details])
    if method == "signed" and (hidden := hidden_at_first(model)) is not None:
        values["initial_pruning_percent"] = 100 * hidden
    return values


def _record(setting: str, values: Mapping[str, tuple[Value, Value]]) -> Record:
    record: Record = {"setting": setting}
    for column, (ours, theirs) in values.items():
        record |= {column: ours, f"paper_{column}": theirs}
    other = [column for column, (ours, theirs) in values.items() if _show(ours) != _show(theirs)]
    return record | {"differs": ", ".join(other) or "no"}


def _beside(name: str) -> list[Column]:
    theirs = f"paper_{name}"
    return [Column(name, lambda record: _show(record[name])), Column("paper", lambda record: _show(record[theirs]))]


def _show(value: Value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else cells.text(value)


def _decay(values: Mapping[str, Any]) -> str:
    if values["schedule"] != "exponential":
        return "-"
    return f"{values['decay_rate']:g} / {values['decay_epochs']:g} epochs"


def _plateau(values: Mapping[str, Any]) -> str:
    return "-" if values["schedule"] != "plateau" else f"{values['plateau_factor']:g} ({values['patience']})"


_SETTINGS: Mapping[str, Callable[[Mapping[str, Any]], Value]] = {
    "learning rate": lambda values: values["learning_rate"],
    "decay rate / step": _decay,
    "reduced on a plateau (patience)": _plateau,
    "weight decay": lambda values: values["weight_decay"],
    "momentum": lambda values: values["momentum"],
    "epochs": lambda values: values["epochs"],
    "optimizer": lambda values: values["optimizer"],
    "initial pruning rate %": lambda values: float(share) if (share := values.get("initial_pruning_percent")) else None,
}
