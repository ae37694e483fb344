"""Training a group of seeds: the loop over epochs on the host, and the records it makes."""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ssm import optim, plateau, thresholds
from ssm.data import Dataset
from ssm.errors import UserError
from ssm.ops.convolution import Form
from ssm.plateau import PlateauRule, PlateauState
from ssm.recipes import build
from ssm.recipes.config import Config
from ssm.runs.checkpoint import Bad, Snapshot
from ssm.runs.names import member_key, run_name
from ssm.supermask import Supermask
from ssm.training import gauge, metrics
from ssm.training.devices import seed_loop
from ssm.training.epoch import Begin, Devices, Given, Info, Program, SeedLoop, State, make_program
from ssm.training.snapshot import frozen_hashes, restored, stored_arrays
from ssm.trees import flatten

Row = dict[str, Any]
Member: TypeAlias = tuple[Config, int]
"""A seed under a configuration."""
OnBadSeed: TypeAlias = Literal["quarantine", "stop"]


TRACED = ("learning_rate", "weight_decay", "schedule", "decay_rate", "decay_steps", "staircase")
TRACED += ("patience", "plateau_factor", "cooldown", "min_delta")
"""Fields of a configuration that are arguments of the compiled program, or used on the host alone."""


class Progress(NamedTuple):
    """What a caller is told after each epoch of a group."""

    seeds: Sequence[int]
    epoch: int
    rows: Sequence[Row]  # this epoch's, of the seeds that go on
    seconds: float  # wall time of the epoch for the whole group
    bad: dict[int, Bad]  # by place in the group, those set aside in this epoch
    places: Sequence[int] = ()  # of the rows, in the group
    runs: Sequence[str] = ()  # names of the members' runs


class Outcome(NamedTuple):
    """What one seed ends with; `masks` and `params` are None if it was set aside.

    `values` are what a masked net has beside its masks: scales, offsets, batch statistics, by `COLLECTION/LAYER/NAME`.
    """

    history: list[Row]
    final: Row  # seed, test_accuracy, remaining_weights, failed_epoch and failed_reason (None if it was not set aside)
    masks: dict[str, np.ndarray] | None
    params: Any
    values: dict[str, np.ndarray]


class Result(NamedTuple):
    """What a group of seeds ends with, by seed; `masks` and `params` are those of the seeds that were not set aside."""

    history: list[Row]
    finals: list[Row]
    masks: dict[int, dict[str, np.ndarray]]
    params: dict[int, Any]
    values: dict[int, dict[str, np.ndarray]]


def as_result(outcomes: Sequence[Outcome]) -> Result:
    """Return the outcomes of different seeds of one configuration as one result."""
    whole = {one.final["seed"]: one for one in outcomes if one.masks is not None}
    return Result(
        [row for one in outcomes for row in one.history],
        [one.final for one in outcomes],
        {seed: one.masks for seed, one in whole.items() if one.masks is not None},
        {seed: one.params for seed, one in whole.items()},
        {seed: one.values for seed, one in whole.items()},
    )


class Trainer(NamedTuple):
    """A configuration made ready: the net, its compiled program, and its data on the devices."""

    config: Config
    net: Supermask
    program: Program
    train: build.Split
    test: build.Split
    order: Any
    samples: int
    devices: int
    resumable: bool  # whether frozen weights are hashed, for snapshots


def make_trainer(
    config: Config,
    dataset: Dataset,
    *,
    devices: Devices | None = None,
    loop: SeedLoop | None = None,
    form: Form = "auto",
    resumable: bool = False,
) -> Trainer:
    """Return a trainer whose groups of seeds are spread evenly over `devices` (all by default).

    `loop` says how a device runs its seeds (default: `seed_loop`); `form`, that of the convolutions.
    `resumable` is for those who take snapshots: frozen weights are then hashed as training starts.
    """
    devices = list(devices or jax.local_devices())
    net = build.build(config, classes=dataset.classes, form=form)
    train = build.split(dataset.train_images, dataset.train_labels)
    test = build.split(dataset.test_images, dataset.test_labels)
    example = jnp.zeros((1, *dataset.train_images.shape[1:]))
    variables = jax.jit(net.init)(build.seed_key(0), example)
    if dead := metrics.dead_layers(net.masks(variables)):
        warnings.warn(
            f"{', '.join(dead)}: every mask is 0 at the start, so that nothing passes and nothing is learned; "
            f"threshold {config.threshold} is too high for scores of scale {config.score_scale}",
            stacklevel=2,
        )
    program = make_program(
        net,
        config,
        example,
        gauge=gauge.holds(net.learner, variables["frozen"]),
        loop=loop or seed_loop(config.model),
        devices=devices,
    )
    order = build.fixed_order(len(dataset.train_labels)) if config.order == "fixed" else None
    shared = program.share((train, test, order))
    samples = len(dataset.train_labels)
    return Trainer(config, net, program, *shared, samples=samples, devices=len(devices), resumable=resumable)


def schedule(config: Config, epoch: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the learning rate and weight decay of every step of an epoch (counted from 0), float32 [steps] each.

    Under a plateau schedule both are constant, and each seed has a factor of its own.
    """
    step = np.arange(epoch * steps, (epoch + 1) * steps)
    factor = np.ones(steps, np.float32)
    if config.schedule == "exponential":
        factor = optim.exponential(step, rate=config.decay_rate, steps=config.decay_steps, staircase=config.staircase)
    return np.float32(config.learning_rate) * factor, np.float32(config.weight_decay) * factor


def beginning(members: Sequence[Member]) -> Begin:
    """Return what the seeds of configurations begin with."""
    taus = [thresholds.parameter(thresholds.parse(config.threshold)) for config, _ in members]
    return Begin(np.asarray([seed for _, seed in members], np.uint32), np.asarray(taus, np.float32))


def plateau_rule(config: Config) -> PlateauRule | None:
    """Return the rule by which a configuration reduces its rates, None where it doesn't wait for a plateau."""
    if config.schedule == "exponential":
        return None
    options = {name: getattr(config, name) for name in ("patience", "cooldown", "min_delta", "reductions")}
    return PlateauRule(kind=config.schedule, factor=config.plateau_factor, **options)


def train(trainer: Trainer, seeds: Sequence[int], report: Callable[[Progress], None] = lambda progress: None) -> Result:
    """Train a group of seeds of the trainer's configuration to the end, see `train_members`."""
    return as_result(train_members(trainer, [(trainer.config, seed) for seed in seeds], report))


def train_members(
    trainer: Trainer,
    members: Sequence[Member],
    report: Callable[[Progress], None] = lambda progress: None,
    *,
    begin: Snapshot | None = None,
    after_epoch: Callable[[int, Callable[[], Snapshot]], None] = lambda epoch, snapshot: None,
    on_bad_seed: OnBadSeed = "quarantine",
) -> list[Outcome]:
    """Train a group of seeds to the end, each under a configuration; a seed's numbers don't depend on the others.

    The configurations may differ from the trainer's in the fields of `TRACED` alone, and in the threshold's number.
    A seed whose loss or scores turn non-finite, or that has no weight left in a layer, is set aside with its epoch and
    the reason: it has no further rows and no masks.  Under `stop` it is a UserError instead.
    One whose plateau schedule has made its last reduction stops there, and keeps what it has.

    `begin`, a snapshot of exactly these members, is gone on from.  After every epoch but the last `after_epoch` is
    given the epochs done and a function that takes a snapshot, to be called before it returns; it may raise, which
    ends training.
    """
    program, config = trainer.program, trainer.config
    seeds = [seed for _, seed in members]
    padded = [*range(len(seeds)), *[len(seeds) - 1] * (-len(seeds) % trainer.devices)]  # the copies are never reported
    state = program.start(program.place(beginning([members[index] for index in padded])))
    runs = [run_name(own.as_dict()) for own, _ in members]
    keys = tuple(member_key(own.as_dict(), seed) for own, seed in members)
    frozen = frozen_hashes(state, len(seeds)) if trainer.resumable else ()
    rules = [plateau_rule(own) for own, _ in members]
    plateaus, bad, first = [plateau.start() for _ in seeds], dict[int, Bad](), 0
    history: list[list[Row]] = [[] for _ in seeds]
    if begin is not None:
        state = restored(program, state, begin, keys, frozen, padded)
        plateaus, bad, first = list(begin.plateaus), dict(begin.bad), begin.epoch
        history = [[dict(row) for row in rows] for rows in begin.history]

    def snapshot() -> Snapshot:
        arrays = stored_arrays(state, len(seeds))
        done = {"epoch": epoch + 1, "plateaus": tuple(plateaus), "bad": bad, "history": history}
        return Snapshot(members=keys, arrays=arrays, frozen=frozen, **done)

    for epoch in range(first, config.epochs):
        running = [
            index
            for index, rule in enumerate(rules)
            if index not in bad and not (rule and plateau.stopped(rule, plateaus[index]))
        ]
        if not running:
            break
        started = time.perf_counter()
        rates = _rates(trainer, members, plateaus, epoch)
        given = Given(np.asarray(seeds, np.uint32), *rates, np.isin(np.arange(len(seeds)), running))
        given = Given(*(field[padded] for field in given))
        more = program.share(np.uint32(epoch)), trainer.order, trainer.train, trainer.test
        state, info = program.epoch(state, program.place(given), *more)
        info = jax.device_get(info)  # waits for the epoch to end
        seconds = time.perf_counter() - started
        wrong = {index: metrics.what_is_wrong(info.layers, index, finite=bool(info.finite[index])) for index in running}
        found = {index: Bad(epoch + 1, reason) for index, reason in wrong.items() if reason}
        good = [index for index in running if index not in found]
        for index in good:
            own = (float(rate[index, 0]) for rate in rates)
            history[index].append(_row(info, index, seeds[index], epoch, seconds / len(running), *own))
            if rule := rules[index]:
                plateaus[index] = plateau.update(rule, plateaus[index], float(info.train_loss[index]))
        bad |= found
        report(Progress(seeds, epoch + 1, [history[index][-1] for index in good], seconds, found, good, runs))
        if found and on_bad_seed == "stop":
            index, why = next(iter(found.items()))
            raise UserError(f"seed {seeds[index]} went wrong in epoch {why.epoch}: {why.reason} (--on-bad-seed=stop)")
        if epoch + 1 < config.epochs:
            after_epoch(epoch + 1, snapshot)
    outcomes = _outcomes(program, state, seeds, history, bad)
    # Of a dense net no weights are kept, beside which the rest would be of no use.
    return outcomes if config.method != "baseline" else [one._replace(values={}) for one in outcomes]


def _rates(trainer: Trainer, members: Sequence[Member], plateaus: Sequence[PlateauState], epoch: int):
    """Return the members' learning rates and weight decays in an epoch, float32 [members, steps] each."""
    steps = build.steps_per_epoch(trainer.samples, trainer.config.batch_size) * trainer.config.passes
    scales = np.asarray([[state.scale] for state in plateaus], np.float32)
    learning, decay = zip(*(schedule(config, epoch, steps) for config, _ in members), strict=True)
    return np.stack(learning) * scales, np.stack(decay) * scales


def _row(info: Info, index: int, seed: int, epoch: int, seconds: float, learning_rate, weight_decay) -> Row:
    scores = {name: float(getattr(info, name)[index]) for name in Info._fields[:4]}
    layers = metrics.shares(info.layers, index)
    rest = {"seconds": seconds, "learning_rate": float(learning_rate), "weight_decay": float(weight_decay)}
    total = {name: layers.pop(name) for name in ("remaining_weights", "flips")}
    return {"seed": seed, "epoch": epoch + 1, **scores, **total, **rest, **layers}


def _outcomes(
    program: Program, state: State, seeds: Sequence[int], history: list[list[Row]], bad: dict[int, Bad]
) -> list[Outcome]:
    masks, params, rest = jax.device_get(program.finish(state))
    outcomes = []
    for index, (seed, rows) in enumerate(zip(seeds, history, strict=True)):
        last = rows[-1] if rows else {}
        final = {"seed": seed} | {name: last.get(name, float("nan")) for name in ("test_accuracy", "remaining_weights")}
        wrong = bad.get(index)
        final |= {"failed_epoch": wrong and wrong.epoch, "failed_reason": wrong and wrong.reason}
        own = None if wrong else {name: mask[index] for name, mask in masks.items()}
        learned, kept = jax.tree.map(lambda leaf, i=index: leaf[i], (params, rest))
        values = {} if wrong else _values(learned["net"], kept)
        outcomes.append(Outcome(rows, final, own, None if wrong else learned, values))
    return outcomes


def _values(params: Any, rest: Any) -> dict[str, np.ndarray]:
    leaves = {("params", *path): leaf for path, leaf in flatten(params).items() if path[-1] != "kernel"}
    return {"/".join(path): np.asarray(leaf) for path, leaf in (leaves | flatten(rest)).items()}
