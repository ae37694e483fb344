"""A run's configuration, its data and its job, to be computed here the way that its environment was recorded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from options import keep_compiled
from ssm.errors import UserError
from ssm.runs.reader import FinishedRun


class Recorded(NamedTuple):
    """What a run trains: `Config`, `Dataset`, `Job`, and how a device runs its seeds (None: by default)."""

    config: Any
    dataset: Any
    job: Any
    loop: Any


def recorded(run: FinishedRun, environment: Mapping[str, Any], data_dir: Path | None) -> Recorded:
    """Start JAX as a run's environment says, load its data, and return its job.

    Raises:
        UserError: if its configuration cannot be run here, or its data are not those that it was trained on.
    """
    # JAX takes seconds to import: what is wrong with the run itself is said before.
    from ssm import data
    from ssm.runs.initial import config_of
    from ssm.runs.job import recorded_job
    from ssm.runs.reproduction import check_same_data
    from ssm.training import devices

    config = config_of(run)
    if environment.get("deterministic"):
        devices.deterministic()
    devices.use_host_devices()
    keep_compiled()
    dataset = data.load(_where(config.dataset, data_dir), data_dir=data_dir)
    job, loop = recorded_job(config, dataset, environment)
    check_same_data(run, environment, job.about["data"], job.source)
    return Recorded(config, dataset, job, loop)


def _where(name: str, data_dir: Path | None) -> str:
    """Return a data set's name with the place of one's own, of which a configuration has the name alone."""
    for prefix, suffix in (("npz:", ".npz"), ("idx:", "")):
        if name.startswith(prefix):
            if data_dir is None:
                raise UserError(f"the run's data, {name}, are a file of your own: name its folder as --data-dir.")
            return f"{prefix}{data_dir / name.removeprefix(prefix)}{suffix}"
    return name
