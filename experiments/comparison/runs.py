"""The runs of a comparison: configurations that are trained as one program, and what is finished of them."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from comparison.records import finished, trained
from options import Options, configured, job_of, run_options


class Runs:
    """Runs that are in a folder, or were published before, or are to be trained; all share options and data set.

    base: the options of all runs, with the folder.  published: a folder of summaries of runs that count as finished.
    """

    def __init__(self, base: Options, published: Path):
        self.base, self.published = base, published
        self.dataset: Any = None

    def config(self, *, method_options: str = "", **given: Any) -> Any:
        """Return the configuration with options beside all runs'; method_options as a configuration has them."""
        config, self.dataset = configured(replace(self.base, **given), self.dataset, method_options=method_options)
        return config

    def train(self, configs: Sequence[Any], seeds: Sequence[int]) -> None:
        """Train what is missing of configurations that are one program."""
        configs = [config for config in configs if self.finished(config, len(seeds)) is None]
        if not configs:
            return
        from ssm.runs.names import config_hash
        from ssm.runs.run import run_jobs

        for config in configs:
            self.take_over(config)
        jobs = [job_of(self.base, config, self.dataset) for config in configs]
        folder = self.base.out / "groups" / "-".join(config_hash(config.as_dict()) for config in configs)
        run_jobs(jobs, list(seeds), out=self.base.out, folder=folder, options=run_options(self.base))

    def take_over(self, config: Any) -> None:
        """Copy a published run that was stopped between seeds, with its history, to go on with the missing ones."""
        from ssm.runs.names import run_folder

        published, own = (run_folder(folder, config.as_dict()) for folder in (self.published, self.base.out))
        if (published / "history.csv").exists() and not own.exists():
            shutil.copytree(published, own)

    def finished(self, config: Any, seeds: int = 1) -> Any:
        """Return a configuration's run of at least so many seeds, excluded ones included; None where none is."""
        run = finished((self.base.out, self.published), config.as_dict())
        return run if run is not None and trained(run) >= seeds else None
