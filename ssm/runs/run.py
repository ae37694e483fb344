"""A whole run: the seeds that are missing, group by group, each group saved as it ends."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from ssm.runs import checkpoint
from ssm.recipes.build import build
from ssm.runs.checkpoint import Snapshot
from ssm.recipes.config import Config
from ssm.ops.convolution import Form
from ssm.data import Dataset
from ssm.training.devices import available_memory, environment, seed_loop
from ssm.runs.processes import Hosts, agreed
from ssm.training.epoch import SeedLoop
from ssm.errors import UserError
from ssm.runs.estimate import count_masked, fitting_group, memory_needed
from ssm.files import plain, read_json
from ssm.training.first_batch import first_batch, remark
from ssm.runs.signals import Interrupted, Interrupts, watched
from ssm.runs.journal import Journal
from ssm.runs.saving import Saving, keeper
from ssm.runs.lock import held
from ssm.runs.progress import Report, reporter
from ssm.runs.folder import Run, clear, open_run
from ssm.runs.names import member_key, run_folder, run_name
from ssm.training.loop import Member, OnBadSeed, Outcome, Progress, Trainer, as_result, make_trainer, train_members

MATMUL_PRECISION = "highest"  # float32 must mean float32: by default a GPU's products would be TF32
MEMORY_SHARE = 0.8  # of what is there: the estimate may be a quarter too low
GRACE = "the running epoch is finished and saved first; once more: stop at once"
WAIT_SECONDS = 0.5  # between two looks at what other processes have finished
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
    config: Config,
    dataset: Dataset,
    seeds: int,
    *,
    group: int | None = None,
    loop: SeedLoop | None = None,
    together: bool = False,
) -> tuple[int, int]:
    """Return `plan` for all devices, with fewer seeds together where memory has no room for them.

    A `group` that the user asks for is not made smaller; `together` plans for all seeds at once on any backend.
    """
    planned, devices = plan(seeds, len(jax.local_devices()), group or (seeds if together else None))
    if group is None:
        net = build(config, classes=dataset.classes)
        needed = memory_needed(net, config, dataset, devices=devices, loop=loop or seed_loop(config.model))
        planned = fitting_group(needed, planned, MEMORY_SHARE * available_memory())
    return planned, min(planned, devices)


def check_data(run: Run, fingerprint: str) -> None:
    """Raise UserError if the run's seeds were trained on other data of the same name, the user's own files, say."""
    for entry in read_json(run.folder / "environment.json"):
        if entry["environment"].get("data", fingerprint) != fingerprint:
            source = (run.summary() or {}).get("source")
            raise UserError(
                f"{run.folder} holds seeds trained on other data of the same name ({source}); choose another --out"
            )


@contextmanager
def no_watchers(folder: Path) -> Iterator[Report]:
    """Give a report that does nothing."""
    yield lambda told: None


@dataclass(frozen=True, kw_only=True)
class Conduct:
    """How a run goes on, whatever it computes; its numbers depend on none of this.

    saving: how often groups in training are saved.
    fresh: remove all that the run's folder holds first, instead of going on with it.
    on_bad_seed: see `train_members`.
    watchers: makes one more report from the folder, TensorBoard's, say.
    tell: is given what is worth knowing, a line at a time.
    hosts: which of the processes that share the run's seeds this one is.
    """

    saving: Saving = field(default_factory=Saving)
    fresh: bool = False
    on_bad_seed: OnBadSeed = "quarantine"
    watchers: Callable[[Path], AbstractContextManager[Report]] = no_watchers
    tell: Callable[[str], None] = lambda line: None
    hosts: Hosts = field(default_factory=Hosts)


def how_run(config: Config, dataset: Dataset, loop: SeedLoop, form: Form) -> dict[str, Any]:
    """Return what is recorded beside a run's numbers: versions, devices, how it is computed, and the data's hash."""
    return environment(
        precision=config.precision,
        seed_loop=loop,
        convolutions=form,
        matmul_precision=MATMUL_PRECISION,
        data=dataset.fingerprint(),
        image_shape=dataset.train_images.shape[1:],
        class_names=dataset.class_names,
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
    conduct: Conduct | None = None,
) -> Run:
    """Train the seeds that the configuration's folder under `out` does not hold yet, and return the run.

    `group` seeds are trained together and saved together; the numbers do not depend on it.  `loop` and `form` force the
    way seeds and convolutions are computed.  Seeds that were saved in the middle of their training go on from there.
    Raises UserError where the folder cannot be written, is another run's, or in use by another program; Interrupted
    after Ctrl-C or SIGTERM, once the running epoch is saved.
    """
    conduct, loop = conduct or Conduct(), loop or seed_loop(config.model)
    where = how_run(config, dataset, loop, form)
    run = described_run(config, where, dataset, out)
    folder = run.folder

    def opened() -> list[int]:
        """Open the folder, as one process of all does, and return the seeds that it lacks."""
        stack.enter_context(held(folder))
        missing = take_up(run, seeds, conduct)
        if missing:
            Journal(folder, conduct.tell)("opened")
        return missing

    with ExitStack() as stack:
        missing = agreed(conduct.hosts, opened, f"{folder.name}, data {where['data']}")
        if missing:
            members = [(config, seed) for seed in conduct.hosts.share(missing)]
            trainer, group = ready(config, dataset, max(len(members), 1), group=group, loop=loop, form=form)
            run = dataclasses.replace(run, weights=count_weights_of(trainer, dataset))
            with watched(GRACE) as interrupts:
                train_groups(trainer, members, {run.name: run}, folder, group, where["data"], conduct, interrupts)
                _await_others(run, missing, conduct.hosts, interrupts)
            if conduct.hosts.number == 0:
                checkpoint.remove_finished(folder / checkpoint.FOLDER, finished_keys([run]))
    return run


def described_run(config: Config, environment: Mapping[str, Any], dataset: Dataset, out: Path) -> Run:
    """Return the run of a configuration under `out`, whose folder need not be there."""
    settings = plain(config.as_dict())
    return Run(folder=run_folder(out, settings), config=settings, environment=environment, source=dataset.source, weights=None)


def take_up(run: Run, seeds: Sequence[int], conduct: Conduct) -> list[int]:
    """Open a run's folder, which the caller holds, and return the seeds that it lacks; raises as `run_seeds` does."""
    if conduct.fresh:
        clear(run.folder)
    where = run.folder
    open_run(where.parent, config=run.config, environment=run.environment, source=run.source, folder=where)
    run.add_parts()
    check_data(run, run.environment["data"])
    checkpoint.remove_finished(run.folder / checkpoint.FOLDER, finished_keys([run]))
    return run.missing_seeds(seeds)


def finished_keys(runs: Iterable[Run]) -> list[str]:
    """Return the keys of all finished seeds of some runs, those of older checkpoints too."""
    return [key for run in runs for seed in run.finished_seeds() for key in run.member_keys(seed)]


def ready(
    config: Config,
    dataset: Dataset,
    seeds: int,
    *,
    group: int | None,
    loop: SeedLoop,
    form: Form,
    together: bool = False,
) -> tuple[Trainer, int]:
    """Return a trainer for so many seeds on this process's devices, and how many it trains at once (`fitting_plan`)."""
    group, devices = fitting_plan(config, dataset, seeds, group=group, loop=loop, together=together)
    own = jax.local_devices()[:devices]
    return make_trainer(config, dataset, devices=own, loop=loop, form=form, resumable=True), group


def count_weights_of(trainer: Trainer, dataset: Dataset) -> int:
    """Return how many weights of a trainer's net its mask covers."""
    return count_masked(trainer.net, jnp.zeros((1, *dataset.train_images.shape[1:])))


def _await_others(run: Run, seeds: Sequence[int], hosts: Hosts, interrupts: Interrupts) -> None:
    """Return when all processes have finished the seeds; the first one adds what the others bring."""
    while not set(seeds) <= set(run.finished_seeds()):
        if hosts.number == 0:
            run.add_parts()
        if interrupts.caught is not None:
            raise Interrupted(interrupts.caught, "stopped while other processes train")
        time.sleep(WAIT_SECONDS)


def train_groups(
    trainer: Trainer,
    members: Sequence[Member],
    runs: Mapping[str, Run],
    folder: Path,
    group: int,
    identity: str,
    conduct: Conduct,
    interrupts: Interrupts,
) -> None:
    """Train members in groups, from their checkpoints if there are any, and add each group to its runs as it ends.

    `runs` are the members' by `run_name`; checkpoints (of data with the fingerprint `identity`) and the journal are
    kept in `folder`, which the caller holds.  Raises as `run_seeds` does.
    """
    if not members:
        return
    journal = Journal(folder, conduct.tell, conduct.hosts.number)
    store = folder / checkpoint.FOLDER
    former = {old: new for run in runs.values() for _, seed in members for new, old in [run.member_keys(seed)]}
    snapshots = [one.renamed(former) for one in checkpoint.newest(store, identity, conduct.tell)]
    groups = resumed_groups(members, snapshots, group)
    with jax.default_matmul_precision(MATMUL_PRECISION):
        conduct.tell(remark(first_batch(trainer, members[0][1]), trainer.config))
    epochs = trainer.config.epochs
    total = sum(epochs - (begin.epoch if begin else 0) for _, begin in groups)
    todo = sum(len(part) * (epochs - (begin.epoch if begin else 0)) for part, begin in groups)
    journal("start", seeds=len(members), epochs=epochs, todo=todo, group=group)
    with (
        reporter(total=total, epochs=epochs) as progress,
        conduct.watchers(folder) as watcher,
        jax.default_matmul_precision(MATMUL_PRECISION),
        _errors_noted(journal),
    ):

        def report(told: Progress) -> None:
            progress(told)
            _note(journal, told)
            watcher(told)

        for number, (part, begin) in enumerate(groups, 1):
            if begin is not None:
                conduct.tell(f"going on with {len(part)} seed(s) after epoch {begin.epoch}")
            saved = begin.epoch if begin else None
            keep = keeper(store, identity, conduct.saving, interrupts, journal, conduct.tell, saved)
            outcomes = train_members(
                trainer, part, report, begin=begin, after_epoch=keep, on_bad_seed=conduct.on_bad_seed
            )
            _add(runs, part, outcomes, conduct.hosts)
            journal("saved", seeds=len(part))
            checkpoint.remove_finished(store, finished_keys(runs.values()))
            if interrupts.caught is not None and number < len(groups):
                journal("interrupted")
                raise Interrupted(
                    interrupts.caught, f"{number} of {len(groups)} groups of seeds are finished and saved"
                )
    journal("end")


@contextmanager
def _errors_noted(journal: Journal) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        journal("error", reason=str(error))
        raise


def _add(runs: Mapping[str, Run], members: Sequence[Member], outcomes: Sequence[Outcome], hosts: Hosts) -> None:
    for name, run in runs.items():
        own = [one for (config, _), one in zip(members, outcomes, strict=True) if run_name(config.as_dict()) == name]
        if not own:
            continue
        result = as_result(own)
        try:
            add = run.add_seeds if hosts.number == 0 else run.add_part
            add(history_rows=result.history, finals=result.finals, masks=result.masks, values=result.values)
        except OSError as error:  # a full disk, say: what was saved before stands
            where = f"{run.folder} cannot be written: {error.strerror or error}"
            raise UserError(f"{where}; what was saved before stands: make room, and give the same command") from error


def resumed_groups(
    members: Sequence[Member], snapshots: Sequence[Snapshot], group: int
) -> list[tuple[list[Member], Snapshot | None]]:
    """Return all members in groups of at most so many, each with the snapshot that it goes on from.

    A member goes on from the snapshot that knows it with the most epochs; one that none knows begins.
    """
    keys = {member_key(config.as_dict(), seed): (config, seed) for config, seed in members}
    best: dict[str, Snapshot] = {}
    for snapshot in sorted(snapshots, key=lambda one: one.epoch):
        best |= dict.fromkeys((key for key in snapshot.members if key in keys), snapshot)
    groups: list[tuple[list[Member], Snapshot | None]] = []
    for snapshot in [*snapshots, None]:
        own = [key for key in keys if best.get(key) is snapshot]
        for start in range(0, len(own), group):
            part = own[start : start + group]
            groups.append(([keys[key] for key in part], snapshot and snapshot.of(part)))
    return groups


def _note(journal: Journal, told: Progress) -> None:
    """Write what an epoch has brought into the journal, a line for each seed."""
    for place, row in zip(told.places, told.rows, strict=True):
        journal("epoch", run=told.runs[place], **row)
    for place, wrong in told.bad.items():
        journal("bad_seed", run=told.runs[place], seed=told.seeds[place], epoch=wrong.epoch, reason=wrong.reason)
