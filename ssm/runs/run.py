"""A run or a sweep: the seeds of one job or several that are missing, group by group, each group saved as it ends."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import jax

from ssm.errors import UserError
from ssm.files import plain, read_json
from ssm.ops.matmul import PRECISION
from ssm.recipes.literature import LITERATURE
from ssm.runs import checkpoint
from ssm.runs.compiled import compiled_group, compiled_memory
from ssm.runs.estimate import count_masked, fitting_group
from ssm.runs.folder import Run, check_config, clear, open_run
from ssm.runs.job import Job
from ssm.runs.journal import Journal
from ssm.runs.lock import held
from ssm.runs.memory import brief, in_fitting_groups
from ssm.runs.names import member_key
from ssm.runs.processes import Hosts, agreed
from ssm.runs.progress import Report, counted, reporter
from ssm.runs.saving import Keeper, Saving
from ssm.runs.signals import Interrupted, Interrupts, watched
from ssm.training.devices import available_memory, environment, seed_loop
from ssm.training.first_batch import first_batch, remark
from ssm.training.loop import Member, OnBadSeed, Outcome, Progress, Trainer, make_trainer, train_members
from ssm.training.snapshot import Snapshot
from ssm.training.task import SeedLoop, Task

MEMORY_SHARE = 0.8  # of what is available: the estimate may be a quarter too low
GRACE = "the running epoch is finished and saved first; once more: stop at once"
WAIT_SECONDS = 0.5  # between two looks at what other processes have finished
CPU_GROUP = 5  # seeds per device: a group that is lost to a crash costs minutes, and small groups cost no speed


@contextmanager
def no_watchers(folder: Path) -> Iterator[Report]:
    """Give a report that does nothing."""
    yield lambda now: None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Execution options; none changes results.

    group: seeds trained and saved together.  loop: how a device runs its seeds.  Both are chosen by default.
    saving: how often groups in training are saved.  snapshots: more to resume than the run's folder has.
    environment: to record in place of this program's, which trained nothing of what it resumes.
    fresh: remove all that the run's folder holds first, instead of resuming.
    on_bad_seed: see `train_members`.
    watchers: makes one more report from the folder, TensorBoard's, say.
    log: is given messages, a line at a time.
    hosts: which of the processes that share the run's seeds this one is.

    Raises UserError for values of another kind.
    """

    group: int | None = None
    loop: SeedLoop | None = None
    saving: Saving = field(default_factory=Saving)
    snapshots: Sequence[Snapshot] = ()
    environment: Mapping[str, Any] | None = None
    fresh: bool = False
    on_bad_seed: OnBadSeed = "exclude"
    watchers: Callable[[Path], AbstractContextManager[Report]] = no_watchers
    log: Callable[[str], None] = lambda line: None
    hosts: Hosts = field(default_factory=Hosts)

    def __post_init__(self) -> None:
        if self.group is not None and not (isinstance(self.group, int) and self.group > 0):
            raise UserError(f"group must be a number of seeds above 0; got {self.group!r}")
        for name, kind in (("loop", SeedLoop), ("on_bad_seed", OnBadSeed)):
            value = getattr(self, name)
            if value is not None and value not in get_args(kind):
                raise UserError(f"{name} must be {' or '.join(map(repr, get_args(kind)))}; got {value!r}")


def plan(seeds: int, devices: int, group: int | None = None) -> tuple[int, int]:
    """Return how many seeds are trained together, and on how many devices, as a device without a seed is idle.

    A `group` is what the user wants; by default all seeds are trained together, on a CPU at most five per device.
    """
    if group is None:
        group = CPU_GROUP * devices if jax.default_backend() == "cpu" else seeds
    group = min(group, seeds)
    return group, min(group, devices)


def fitting_plan(job: Job, seeds: int, options: RunOptions, *, together: bool = False) -> tuple[int, int]:
    """Return `plan` for all devices, with fewer seeds together where memory has no room for them.

    What they need is known for a CPU by an estimate, elsewhere by the compiled program.

    A group that the user asks for is not made smaller, nor one of a net whose memory is not known; `together` plans for
    all seeds at once on any backend.
    """
    group = options.group
    planned, devices = plan(seeds, len(jax.local_devices()), group or (seeds if together else None))
    if group is None:
        available, loop = MEMORY_SHARE * available_memory(), options.loop or seed_loop(job.task)
        if jax.default_backend() != "cpu":
            planned = compiled_group(compiled_memory(job, devices=devices, loop=loop), planned, available)
        elif job.memory is not None:
            planned = fitting_group(job.memory(devices=devices, loop=loop), planned, available)
    return planned, min(planned, devices)


def apart(task: Task, group: int, loop: SeedLoop, available: int) -> bool:
    """Return whether each seed of a group gets two devices, one for each half of its batches.

    So it is where they would be idle: on a CPU, for nets that are computed in halves, seeds one after another.
    """
    return task.halves and loop == "map" and jax.default_backend() == "cpu" and 2 * group <= available


def run_job(job: Job, seeds: Sequence[int], *, out: Path, options: RunOptions | None = None) -> Run:
    """Train the seeds that a job's folder under `out` does not hold yet, and return its run; see `run_jobs`."""
    return run_jobs([job], seeds, out=out, options=options)[0]


def run_jobs(
    jobs: Sequence[Job],
    seeds: Sequence[int],
    *,
    out: Path,
    folder: Path | None = None,
    options: RunOptions | None = None,
) -> list[Run]:
    """Train what is missing of the seeds of jobs of one program, each into its own folder under `out`; return the runs.

    A run is a sweep of one job.  Groups of seeds are trained and saved together; the numbers do not depend on it.  Seeds
    that were saved in the middle of their training are resumed.  `folder` holds the journal and the checkpoints of a
    sweep; those of one job are in its own.

    Raises:
        UserError: where a folder cannot be written, is another run's, or in use by another program.
        Interrupted: after a signal, once the running epoch is saved.
    """
    options = options or RunOptions()
    loop = options.loop or seed_loop(jobs[0].task)
    for job in jobs:
        job.check()  # before a folder is made
    runs = [_described(job, out, loop, options.environment) for job in jobs]
    sweep = folder is not None
    folder = folder or runs[0].folder
    pairs = [(place, seed) for place in range(len(jobs)) for seed in dict.fromkeys(seeds)]
    with ExitStack() as stack:

        def opened() -> list[int]:
            """Open the folders, as one process of all does, and return the places of the pairs that are missing."""
            for path in dict.fromkeys([folder, *(run.folder for run in runs)]):
                stack.enter_context(held(path))
            if options.fresh and sweep:  # a run's own are removed with it
                shutil.rmtree(folder / checkpoint.FOLDER, ignore_errors=True)
            for left in folder.rglob(".*.tmp") if sweep else ():
                left.unlink(missing_ok=True)
            lacking = [_opened(run, seeds, options, folder / checkpoint.FOLDER) for run in runs]
            missing = [number for number, (place, seed) in enumerate(pairs) if seed in lacking[place]]
            checkpoint.remove_finished(folder / checkpoint.FOLDER, finished_keys(runs))
            if missing:
                Journal(folder, options.log)("opened", seeds=len(missing))
            return missing

        identity = f"{folder.name}, data {jobs[0].about['data']}"
        missing = [pairs[number] for number in agreed(options.hosts, opened, identity)]
        if not missing:
            return runs
        stack.enter_context(_errors_noted(Journal(folder, options.log, options.hosts.number)))
        interrupts = stack.enter_context(watched(GRACE))
        members = [
            replace(jobs[place].member(seed), run=runs[place].folder.name)
            for place, seed in options.hosts.share(missing)
        ]
        group, devices = fitting_plan(jobs[0], max(len(members), 1), options, together=sweep)
        trainer = ready(jobs[0], devices=devices, loop=loop)
        weights = count_masked(trainer.task.net(trainer.task.numbers), trainer.task.example)
        runs = [replace(run, weights=weights) for run in runs]
        by_name = {run.folder.name: run for run in runs}
        train_groups(trainer, members, by_name, folder, group, jobs[0], options, interrupts)
        _await_others(runs, jobs, missing, options.hosts, interrupts)
        if interrupts.caught is not None and sweep:
            # In the last epochs: the sweep's other programs must not start.
            raise Interrupted(interrupts.caught, "stopped after a program whose points are finished")
        if options.hosts.number == 0:
            checkpoint.remove_finished(folder / checkpoint.FOLDER, finished_keys(runs))
    return runs


def _described(job: Job, out: Path, loop: SeedLoop, recorded: Mapping[str, Any] | None) -> Run:
    """Return the run of a job under `out`, whose folder need not exist, with an environment if one is recorded."""
    where = recorded or environment(**job.about, seed_loop=loop, matmul_precision=PRECISION)
    return Run(folder=job.folder(Path(out)), config=plain(job.settings), environment=where, source=job.source, weights=None)


def _opened(run: Run, seeds: Sequence[int], options: RunOptions, checkpoints: Path) -> list[int]:
    """Open a run's folder, which the caller holds, and return the seeds that it lacks."""
    if options.fresh:
        clear(run.folder)
    where = run.folder
    if any(checkpoints.glob("*")):  # before this program is recorded in place of that of seeds in training
        check_config(where / "config.json", run.config)
        check_data(run)
    open_run(where.parent, config=run.config, environment=run.environment, source=run.source, folder=where)
    run.add_parts()
    check_data(run)
    checkpoint.remove_finished(run.folder / checkpoint.FOLDER, finished_keys([run]))
    return run.missing_seeds(seeds)


def check_data(run: Run) -> None:
    """Raise UserError if the run's seeds were trained on other data of the same name, or by another program of it.

    The program of a net of one's own, and the rates of its steps, are compared under one version of JAX, on which they
    depend.
    """
    path, environment = run.folder / "environment.json", run.environment
    for entry in read_json(path) if path.exists() else []:
        before = entry["environment"]
        if before.get("data", environment["data"]) != environment["data"]:
            source = (run.summary() or {}).get("source")
            raise UserError(
                f"{run.folder} holds seeds trained on other data of the same name ({source}); choose another --out"
            )
        programs = {one.get("program") for one in (before, environment)}
        if before.get("jax") != environment.get("jax"):
            continue
        if len(programs) > 1:
            raise UserError(
                f"{run.folder} holds seeds of another net, learner, loss or optimiser than this: choose another out="
            )
        if before.get("rates", environment.get("rates")) != environment.get("rates"):  # earlier versions had none
            raise UserError(f"{run.folder} holds seeds of another schedule than this: choose another out=")


def finished_keys(runs: Iterable[Run]) -> list[str]:
    """Return the keys of all finished seeds of some runs."""
    return [member_key(run.config, seed) for run in runs for seed in run.finished_seeds()]


def ready(job: Job, *, devices: int, loop: SeedLoop) -> Trainer:
    """Return a job's trainer on the first so many of this process's devices, or twice as many (`apart`)."""
    train, test, order = job.make_data()
    every = jax.local_devices()
    two = apart(job.task, devices, loop, len(every))
    own = every[: 2 * devices if two else devices]
    return make_trainer(job.task, train, test, order=order, devices=own, loop=loop, apart=two, resumable=True)


def _await_others(
    runs: Sequence[Run], jobs: Sequence[Job], missing: Sequence[tuple[int, int]], hosts: Hosts, interrupts: Interrupts
) -> None:
    """Return when all processes have finished the missing seeds; the first one adds what the others bring."""
    for place, run in enumerate(runs):
        wanted = {seed for own, seed in missing if own == place}
        while not wanted <= set(run.finished_seeds()):
            if hosts.number == 0:
                run.add_parts()
            if interrupts.caught is not None:
                raise Interrupted(interrupts.caught, "stopped while other processes train")
            time.sleep(WAIT_SECONDS)


def keeps_weights(job: Job) -> bool:
    """Return whether a job's run keeps the final weights; those of the paper's methods are made again from the seed."""
    return job.settings["method"] in LITERATURE


def train_groups(
    trainer: Trainer,
    members: Sequence[Member],
    runs: Mapping[str, Run],
    folder: Path,
    group: int,
    job: Job,
    options: RunOptions,
    interrupts: Interrupts,
) -> None:
    """Train members in groups, from their checkpoints if there are any, and add each group to its runs as it ends.

    `runs` are the members' by folder name; checkpoints (of the data of `job`) and the journal are kept in `folder`, which the
    caller holds.  Raises as `run_jobs` does.
    """
    if not members:
        return
    journal = Journal(folder, options.log, options.hosts.number)
    store, identity = folder / checkpoint.FOLDER, job.about["data"]
    epochs = trainer.task.epochs
    if job.advice is not None and interrupts.caught is None:
        options.log(remark(first_batch(trainer, members[:group]), job.advice))

    def train(left: Sequence[Member], group: int) -> Iterator[Sequence[Member]]:
        if interrupts.caught is not None:  # as the program or its first batch was compiled
            journal("interrupted")
            raise Interrupted(interrupts.caught, "stopped before an epoch began; what was saved stands")
        snapshots = [*checkpoint.newest(store, identity, options.log), *options.snapshots]
        groups = resumed_groups(left, snapshots, group)
        fitting = trainer if group >= trainer.devices else ready(job, devices=group, loop=trainer.loop)
        total = sum(epochs - (begin.epoch if begin else 0) for _, begin in groups)
        todo = sum(len(part) * (epochs - (begin.epoch if begin else 0)) for part, begin in groups)
        journal("start", seeds=len(left), epochs=epochs, todo=todo, group=group)
        with reporter(total=total, epochs=epochs) as progress, options.watchers(folder) as watcher:

            def report(now: Progress) -> None:
                progress(now)
                _note(journal, now)
                watcher(now)

            for number, (part, begin) in enumerate(groups, 1):
                if begin is not None:
                    options.log(f"resuming {counted(len(part), 'seed')} after epoch {begin.epoch}")
                saved = begin.epoch if begin else None
                keep = Keeper(
                    folder=store,
                    identity=identity,
                    saving=options.saving,
                    interrupts=interrupts,
                    journal=journal,
                    log=options.log,
                    saved=saved,
                )
                bad = options.on_bad_seed
                more = {"on_bad_seed": bad, "weights": keeps_weights(job)}
                outcomes = train_members(fitting, part, report, begin=begin, after_epoch=keep, due=keep.due, **more)
                _add(runs, part, outcomes, options.hosts)
                journal("saved", seeds=len(part))
                checkpoint.remove_finished(store, finished_keys(runs.values()))
                yield part
                if interrupts.caught is not None and number < len(groups):
                    journal("interrupted")
                    raise Interrupted(
                        interrupts.caught, f"{number} of {len(groups)} groups of seeds are finished and saved"
                    )

    def halved(group: int, why: str) -> None:
        options.log(f"warning: {why}")
        journal("halved", group=group, reason=why)

    in_fitting_groups(members, group, train, halved)
    journal("end")


@contextmanager
def _errors_noted(journal: Journal) -> Iterator[None]:
    """Note in the journal what ends training, whatever it is; a signal is noted where training stops."""
    try:
        yield
    except Interrupted:
        raise
    except BaseException as error:
        journal("error", reason=str(error) if isinstance(error, UserError) else brief(error))
        raise


def _add(runs: Mapping[str, Run], members: Sequence[Member], outcomes: Sequence[Outcome], hosts: Hosts) -> None:
    for name, run in runs.items():
        own = {one.seed: outcome for one, outcome in zip(members, outcomes, strict=True) if one.run == name}
        if not own:
            continue
        whole = {seed: one for seed, one in own.items() if one.masks is not None}
        try:
            add = run.add_seeds if hosts.number == 0 else run.add_part
            add(
                history_rows=[row for one in own.values() for row in one.history],
                finals=[one.final for one in own.values()],
                masks={seed: one.masks for seed, one in whole.items() if one.masks is not None},
                values={seed: one.values for seed, one in whole.items()},
                examples={seed: one.examples for seed, one in whole.items()},
                weights={seed: one.weights for seed, one in whole.items() if one.weights is not None},
            )
        except OSError as error:  # a full disk, say: what was saved before stands
            where = f"{run.folder} cannot be written: {error.strerror or error}"
            raise UserError(f"{where}; what was saved before stands: make room, and give the same command") from error


def resumed_groups(
    members: Sequence[Member], snapshots: Sequence[Snapshot], group: int
) -> list[tuple[list[Member], Snapshot | None]]:
    """Return all members in groups of at most so many, each with the snapshot that it resumes.

    A member resumes the snapshot that knows it with the most epochs; one that none knows begins.
    """
    keys = {member.key: member for member in members}
    best = checkpoint.furthest(snapshots)
    groups: list[tuple[list[Member], Snapshot | None]] = []
    for snapshot in [*snapshots, None]:
        own = [key for key in keys if best.get(key) is snapshot]
        for start in range(0, len(own), group):
            part = own[start : start + group]
            groups.append(([keys[key] for key in part], snapshot and snapshot.of(part)))
    return groups


def _note(journal: Journal, now: Progress) -> None:
    """Write an epoch into the journal, a line for each seed."""
    for place, row in zip(now.places, now.rows, strict=True):
        journal("epoch", run=now.runs[place], **row)
    for place, failure in now.failures.items():
        reason = {"epoch": failure.epoch, "reason": failure.reason}
        journal("bad_seed", run=now.runs[place], seed=now.seeds[place], **reason)
