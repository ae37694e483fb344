"""A whole run: the seeds that are missing, group by group, each group saved as it ends."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp

from ssm.build import build
from ssm.config import Config
from ssm.convolution import Form
from ssm.data import Dataset
from ssm.devices import available_memory, environment, seed_loop
from ssm.epoch import SeedLoop
from ssm.errors import UserError
from ssm.estimate import count_masked, fitting_group, memory_needed
from ssm.files import read_json
from ssm.firstbatch import first_batch, remark
from ssm.progress import reporter
from ssm.results import Run, open_run
from ssm.train import make_trainer, train

MATMUL_PRECISION = "highest"  # float32 must mean float32: by default a GPU's products would be TF32
MEMORY_SHARE = 0.8  # of what is there: the estimate may be a quarter too low
CPU_GROUP = 5  # seeds per device: a group that is lost to a crash costs minutes, and small groups cost no speed


def plan(seeds: int, devices: int, group: int | None = None) -> tuple[int, int]:
    """Return how many seeds are trained together, and on how many devices, one with no seed being of no use.

    A `group` is what the user wants; by default all seeds are trained together, on a CPU at most five per device.
    """
    if group is None:
        group = CPU_GROUP * devices if jax.default_backend() == "cpu" else seeds
    group = min(group, seeds)
    return group, min(group, devices)


def fitting_plan(
    config: Config, dataset: Dataset, seeds: int, *, group: int | None = None, loop: SeedLoop | None = None
) -> tuple[int, int]:
    """Return `plan` for all devices, with fewer seeds together where memory has no room for them.

    A `group` that the user asks for is not made smaller.
    """
    planned, devices = plan(seeds, len(jax.devices()), group)
    if group is None:
        net = build(config, classes=dataset.classes)
        needed = memory_needed(net, config, dataset, devices=devices, loop=loop or seed_loop(config.model))
        planned = fitting_group(needed, planned, MEMORY_SHARE * available_memory())
    return planned, min(planned, devices)


def _check_data(run: Run, fingerprint: str) -> None:
    """Raise UserError if the run's seeds were trained on other data of the same name, the user's own files, say."""
    for entry in read_json(run.folder / "environment.json"):
        if entry["environment"].get("data", fingerprint) != fingerprint:
            source = (run.summary() or {}).get("source")
            raise UserError(
                f"{run.folder} holds seeds trained on other data of the same name ({source}); choose another --out"
            )


def run_seeds(
    config: Config,
    dataset: Dataset,
    seeds: Sequence[int],
    *,
    out: Path,
    group: int | None = None,
    loop: SeedLoop | None = None,
    form: Form = "auto",
    tell: Callable[[str], None] = lambda line: None,
) -> Run:
    """Train the seeds that the configuration's folder under `out` does not hold yet, and return the run.

    `group` seeds are trained together and saved together; the numbers do not depend on it.  `loop` and `form` force the
    way seeds and convolutions are computed; `tell` is given what is worth knowing before training starts.
    Raises UserError where the folder cannot be written, or is another run's.
    """
    loop = loop or seed_loop(config.model)
    where = environment(
        precision=config.precision,
        seed_loop=loop,
        convolutions=form,
        matmul_precision=MATMUL_PRECISION,
        data=dataset.fingerprint(),
    )
    run = open_run(out, config=config.as_dict(), environment=where, source=dataset.source)
    _check_data(run, where["data"])
    finished = set(run.finished_seeds())
    missing = [seed for seed in dict.fromkeys(seeds) if seed not in finished]
    if not missing:
        return run
    group, devices = fitting_plan(config, dataset, len(missing), group=group, loop=loop)
    trainer = make_trainer(config, dataset, devices=jax.devices()[:devices], loop=loop, form=form)
    example = jnp.zeros((1, *dataset.train_images.shape[1:]))
    run = dataclasses.replace(run, weights=count_masked(trainer.net, example))
    with jax.default_matmul_precision(MATMUL_PRECISION):
        tell(remark(first_batch(trainer, missing[0]), config))
    groups = [missing[start : start + group] for start in range(0, len(missing), group)]
    with reporter(groups=len(groups), epochs=config.epochs) as report, jax.default_matmul_precision(MATMUL_PRECISION):
        for members in groups:
            result = train(trainer, members, report)
            try:
                run.add_seeds(history_rows=result.history, finals=result.finals, masks=result.masks)
            except OSError as error:  # a full disk, say: what was saved before stands
                raise UserError(f"{run.folder} cannot be written: {error.strerror or error}") from error
    return run
