"""What the programs that compare runs have in common on the command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from options import Options as RunOptions
from ssm.errors import UserError


def at_least_one_seed(seeds: int) -> None:
    """Raise UserError for a number of seeds that is none."""
    if seeds < 1:
        raise UserError(f"--seeds={seeds}: give at least 1.")


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options of a comparison; `dataset` and `out` are a program's own."""

    dataset: str
    out: Path
    width: float = 1.0
    """Factor on the sizes of all layers but the last."""
    data_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder with the data set's files."""
    report: bool = False
    """Train nothing; write the table and the figures of what is finished."""
    tables: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: tables in --out)")] = None
    """Folder of the table and the figures; those of the repository are in docs/results."""

    @property
    def table_folder(self) -> Path:
        """Where the table and the figures are written."""
        return self.tables or self.out / "tables"

    def data_of(self, model: str) -> str:
        """Return the data set, which `auto` makes a model's own."""
        from ssm.recipes.presets import MODEL_DATA

        return self.dataset if self.dataset != "auto" else MODEL_DATA.get(model, ("auto",))[0]

    def shared(self, **named: Any) -> RunOptions:
        """Return the options that all runs share, with others as named."""
        width = None if self.width == 1 else self.width
        return RunOptions(
            **{"dataset": self.dataset, "width": width, "out": self.out, "data_dir": self.data_dir} | named
        )
