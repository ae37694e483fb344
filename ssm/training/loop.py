"""Training a group of seeds: the loop over epochs on the host, and the records it makes."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import numpy as np

from ssm import plateau
from ssm.errors import UserError
from ssm.learners.base import changes_state
from ssm.paths import path_name
from ssm.plateau import PlateauRule, PlateauState
from ssm.training import metrics
from ssm.training.ahead import Meanwhile, epoch_arguments
from ssm.training.batches import count_samples, seed_key, steps_per_epoch
from ssm.training.devices import seed_loop
from ssm.training.epoch import Begin, Devices, EpochInputs, Info, Program, SeedLoop, initial_variables, make_program
from ssm.training.frozen import state_hashes
from ssm.training.live import LiveUnits, live_units_of
from ssm.training.settings import pinned
from ssm.training.snapshot import Failure, Snapshot, frozen_hashes, restored, stored_arrays
from ssm.training.step import State
from ssm.training.task import EXAMPLES, Task
from ssm.training.units import Sizes
from ssm.trees import flatten

UNITS_EVERY = 4
"""Epochs after which hidden units may be left out where epochs are dispatched ahead; elsewhere after each."""
MOST_AHEAD = 10.0
"""Seconds of an epoch from which on the next is not dispatched ahead: a signal would have to wait for both."""

Row = dict[str, Any]
OnBadSeed: TypeAlias = Literal["exclude", "stop"]
Schedule: TypeAlias = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Steps, counted from 0 -> learning rate and weight decay at each, float32."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A seed, and what the seeds of a group may differ in.

    numbers: what its net depends on (`Task.numbers`).  schedule: its rates; with a plateau rule, before any reduction.
    key: what it is called in snapshots.  run: the name of its run.
    """

    seed: int
    schedule: Schedule
    numbers: Mapping[str, float] = field(default_factory=dict)
    plateau: PlateauRule | None = None
    key: str = ""
    run: str = ""


class Dispatched(NamedTuple):
    """An epoch that the devices compute: places of the seeds it trains, their rates, and what its parts report."""

    running: Sequence[int]
    rates: tuple[np.ndarray, np.ndarray]
    found: list[tuple[list[int], Info]]


class Progress(NamedTuple):
    """What a caller is given after each epoch of a group."""

    seeds: Sequence[int]
    epoch: int
    rows: Sequence[Row]  # this epoch's, of the seeds that continue
    seconds: float  # wall time of the epoch for the whole group
    failures: dict[int, Failure]  # by place in the group, those excluded in this epoch
    places: Sequence[int] = ()  # of the rows, in the group
    runs: Sequence[str] = ()  # names of the members' runs


class Outcome(NamedTuple):
    """What one seed ends with; `masks` and `variables` are None if it was excluded, its epoch and reason if it was not.

    `values` are what a masked net has beside its masks: scales, offsets, batch statistics, by `COLLECTION/LAYER/NAME`.
    `examples` are the first test `inputs` and the net's `outputs` of them, of a task that examines its nets for a run.
    `weights` are those of the masked layers as they are evaluated, by layer, where they were asked for.
    """

    history: list[Row]
    final: Row  # seed, last test metrics, remaining_weights, frozen (a hash or None), failed_epoch and failed_reason
    masks: dict[str, np.ndarray] | None
    variables: Any
    values: dict[str, np.ndarray]
    examples: dict[str, np.ndarray]
    weights: dict[str, np.ndarray] | None = None


class Trainer(NamedTuple):
    """A task made ready: its compiled program, and its data on the devices."""

    task: Task
    program: Program
    train: Any
    test: Any
    order: Any
    devices: int
    loop: SeedLoop
    ahead: bool  # whether an epoch is dispatched before the one before it is read
    resumable: bool  # whether snapshots and runs need what is hashed and examined


@pinned()
def make_trainer(
    task: Task,
    train: Any,
    test: Any,
    *,
    order: np.ndarray | None = None,
    devices: Devices | None = None,
    loop: SeedLoop | None = None,
    apart: bool = False,
    resumable: bool = False,
) -> Trainer:
    """Return a trainer whose groups of seeds are spread evenly over `devices` (all by default).

    train, test: pytrees of arrays with one entry for each sample.  order: one order of the training samples for all
    epochs and seeds, instead of one for each.  `loop` says how a device runs its seeds (default: `seed_loop`).
    `apart` gives a seed two devices, for a task that computes batches in `halves`.
    `resumable` is for those who take snapshots or keep a run: frozen weights are then hashed as training starts, and
    the outputs of some test samples kept as it ends.
    """
    devices = list(devices or jax.local_devices())
    net = task.net(task.numbers)
    if task.transposed and not net.learner.elementwise:
        raise UserError("a task may hold matrices transposed only where its learner is elementwise")
    jax.eval_shape(lambda: net.masks(initial_variables(net, seed_key(0), task.example)))  # what can't be is said here
    loop = loop or seed_loop(task)
    program = make_program(task, loop=loop, devices=devices, apart=apart)
    shared = program.share((train, test, order))
    ahead = devices[0].platform != "cpu"  # a CPU computes without the host's help, and is never idle
    return Trainer(
        task, program, *shared, devices=len(devices) // (2 if apart else 1), loop=loop, ahead=ahead, resumable=resumable
    )


@pinned()
def train_members(
    trainer: Trainer,
    members: Sequence[Member],
    report: Callable[[Progress], None] = lambda progress: None,
    *,
    begin: Snapshot | None = None,
    after_epoch: Callable[[int, Callable[[], Snapshot]], None] = lambda epoch, snapshot: None,
    due: Callable[[int], bool] = lambda epoch: True,
    on_bad_seed: OnBadSeed = "exclude",
    variables: bool = False,
    weights: bool = False,
) -> list[Outcome]:
    """Train a group of seeds to the end; a seed's numbers don't depend on the others.

    A seed whose loss or params turn non-finite, or that has no weight left in a layer, is excluded with its epoch and
    the reason: it has no further rows and no masks.  Under `stop` it is a UserError instead.
    One whose plateau schedule has made its last reduction stops there, and keeps what it has.

    `begin`, a snapshot of exactly these members, is resumed.  After every epoch but the last `after_epoch` is given the
    epochs done and a function that takes a snapshot, to be called before it returns; it may raise, which ends training.
    `due` says, of the epochs done, whether it has something to do: a GPU goes on with the next epoch meanwhile if not.
    `variables` and `weights` ask for the nets' variables, and the weights that they stand for, at the end.
    """
    program, task = trainer.program, trainer.task
    updated = changes_state(task.net(task.numbers).learner)
    seeds = [member.seed for member in members]
    padded = with_padding(len(seeds), trainer.devices)
    state = started(trainer, members)
    runs = [member.run for member in members]
    keys = tuple(member.key for member in members)
    frozen = frozen_hashes(state, len(seeds), updated=updated) if trainer.resumable else ()
    kernels = state_hashes(task, state, len(seeds)) if trainer.resumable else [None] * len(seeds)
    rules = [member.plateau for member in members]
    plateaus, failures, first = [plateau.start() for _ in seeds], dict[int, Failure](), 0
    history: list[list[Row]] = [[] for _ in seeds]
    units = live_units_of(task, state, len(seeds))
    meanwhile = Meanwhile(partial(compile_epoch, trainer, jax.eval_shape(lambda: state)))

    def ordered(state: State, before: LiveUnits, after: LiveUnits) -> State:
        if before is after or not (before.some_left_out or after.some_left_out):
            return state
        orders = {layer: order[padded] for layer, order in before.moves(after).items()}
        return program.reorder(state, program.place(orders))

    if begin is None:
        warn_of_dead_layers(trainer, state)
    else:
        state = restored(program, state, begin, keys, frozen, padded, updated=updated)
        whole, units = units, units.where(begin.kept)
        state = ordered(state, whole, units)
        plateaus, failures, first = list(begin.plateaus), dict(begin.failures), begin.epoch
        history = [[dict(row) for row in rows] for rows in begin.history]

    def snapshot() -> Snapshot:
        whole = ordered(state, units, units.whole(len(seeds)))
        arrays = stored_arrays(whole, len(seeds), updated=updated)
        done = {"epoch": epoch + 1, "plateaus": tuple(plateaus), "failures": failures, "history": history}
        return Snapshot(members=keys, arrays=arrays, frozen=frozen, kept=units.flags, **done)

    def dispatch(epoch: int) -> Dispatched:
        nonlocal state
        running = [
            index
            for index, rule in enumerate(rules)
            if index not in failures and not (rule and plateau.stopped(rule, plateaus[index]))
        ]
        rates = _rates(trainer, members, plateaus, epoch)
        learning, decay = (rate[padded] for rate in rates)
        given = EpochInputs(np.asarray(seeds, np.uint32)[padded], learning, decay, None)
        more = program.share(np.uint32(epoch)), trainer.order, trainer.train, trainer.test
        found = []
        for sizes, places in units.parts(running, trainer.loop).items() if running else ():
            meanwhile.finish(sizes)
            own = given._replace(active=np.isin(np.arange(len(padded)), places))  # the padding is not
            state, reported = program.epoch_of(sizes)(state, program.place(own), *more)
            found.append((places, reported))
        return Dispatched(running, rates, found)

    every = UNITS_EVERY if trainer.ahead else 1
    following, seconds, read = None, math.inf, time.perf_counter()
    for epoch in range(first, task.epochs):
        now = following or dispatch(epoch)
        if not now.running:
            break
        follows = trainer.ahead and seconds < MOST_AHEAD and epoch + 1 < task.epochs
        decides = any(rule is not None for rule in rules) or (task.hidden is not None and (epoch + 1) % every == 0)
        following = dispatch(epoch + 1) if follows and not decides and not due(epoch + 1) else None
        found = jax.device_get(now.found)  # waits for the epoch to end
        info = units.combined(found)
        before, read = read, time.perf_counter()
        seconds = read - before
        running = [index for index in now.running if index not in failures]
        wrong = {index: metrics.what_is_wrong(info.layers, index, finite=bool(info.finite[index])) for index in running}
        new = {index: Failure(epoch + 1, reason) for index, reason in wrong.items() if reason}
        good = [index for index in running if index not in new]
        live = {index: _of_seed(one.live, index) for places, one in found for index in places}
        for index in good:
            own = (float(rate[index, 0]) for rate in now.rates)
            row = _row(trainer, info, index, seeds[index], epoch, seconds / len(running), *own)
            history[index].append(row | units.row(index, live[index]))
            if rule := rules[index]:
                plateaus[index] = plateau.update(rule, plateaus[index], float(info.train["loss"][index]))
        failures |= new
        report(Progress(seeds, epoch + 1, [history[index][-1] for index in good], seconds, new, good, runs))
        if new and on_bad_seed == "stop":
            index, why = next(iter(new.items()))
            raise UserError(f"seed {seeds[index]} failed in epoch {why.epoch}: {why.reason} (--on-bad-seed=stop)")
        if epoch + 1 < task.epochs and following is None:
            if (epoch + 1) % every == 0:
                left = (task.epochs - epoch - 1) * task.passes * count_samples(trainer.train)
                alive = {index: live[index] for index in good}
                whole, units = units, units.without_dead(alive, left)
                state = ordered(state, whole, units)
                needed = units.parts(good, trainer.loop)
                for sizes in whole.soon(alive, left).parts(good, trainer.loop):
                    if sizes not in needed:
                        meanwhile.begin(sizes)
            after_epoch(epoch + 1, snapshot)
            read = time.perf_counter()
    state = ordered(state, units, units.whole(len(seeds)))
    return _outcomes(trainer, state, seeds, history, failures, kernels, variables, weights)


@pinned()
def compile_epoch(trainer: Trainer, state: State, sizes: Sizes) -> None:
    """Compile the epoch of the first so many units of each hidden layer, for seeds and padding of a state's shapes."""
    parts = {"train": trainer.train, "test": trainer.test, "order": trainer.order, "state": state}
    seeds = len(jax.tree.leaves(state)[0])
    trainer.program.lower(sizes, *epoch_arguments(trainer.task, trainer.program, seeds, **parts)).compile()


def with_padding(seeds: int, devices: int) -> list[int]:
    """Return the places of a group's seeds, and copies of the last that even them out over devices, never trained."""
    return [*range(seeds), *[seeds - 1] * (-seeds % devices)]


def started(trainer: Trainer, members: Sequence[Member]) -> State:
    """Return the state that a group's seeds begin with, and the padding."""
    padded = with_padding(len(members), trainer.devices)
    return trainer.program.start(trainer.program.place(beginning([members[place] for place in padded])))


def warn_of_dead_layers(trainer: Trainer, state: State) -> None:
    """Warn of layers that have no weight in any seed of a state that was just started."""
    if not trainer.task.net(trainer.task.numbers).learner.has_masks:
        return
    if dead := metrics.dead_layers(jax.device_get(trainer.program.masks(state))):
        warnings.warn(
            f"{', '.join(dead)}: every mask is 0 at the start, so that nothing passes and nothing is learned: the "
            "threshold is too high for the scale of the scores",
            stacklevel=3,
        )


def beginning(members: Sequence[Member]) -> Begin:
    """Return what seeds begin with."""
    numbers = {name: np.asarray([one.numbers[name] for one in members], np.float32) for name in members[0].numbers}
    return Begin(np.asarray([member.seed for member in members], np.uint32), numbers)


def _rates(trainer: Trainer, members: Sequence[Member], plateaus: Sequence[PlateauState], epoch: int):
    """Return the members' learning rates and weight decays in an epoch, float32 [members, steps] each."""
    task = trainer.task
    steps = steps_per_epoch(count_samples(trainer.train), task.batch_size) * task.passes
    scales = np.asarray([[state.scale] for state in plateaus], np.float32)
    numbers = np.arange(epoch * steps, (epoch + 1) * steps)
    learning, decay = zip(*(member.schedule(numbers) for member in members), strict=True)
    return np.stack(learning) * scales, np.stack(decay) * scales


def _row(
    trainer: Trainer, info: Info, index: int, seed: int, epoch: int, seconds: float, learning_rate, weight_decay
) -> Row:
    parts = {
        "train": (info.train, count_samples(trainer.train) * trainer.task.passes),
        "test": (info.test, count_samples(trainer.test)),
    }
    means = {
        f"{part}_{name}": float(values[index]) if name == "loss" else metrics.as_ratio(float(values[index]), samples)
        for part, (by_name, samples) in parts.items()
        for name, values in sorted(by_name.items(), key=lambda pair: (pair[0] != "loss", pair[0]))
    }
    layers = metrics.shares(info.layers, index)
    rest = {"seconds": seconds, "learning_rate": float(learning_rate), "weight_decay": float(weight_decay)}
    total = {name: layers.pop(name) for name in ("remaining_weights", "flips")}
    return {"seed": seed, "epoch": epoch + 1, **means, **total, **rest, **layers}


def _outcomes(
    trainer: Trainer,
    state: State,
    seeds: Sequence[int],
    history: list[list[Row]],
    failures: dict[int, Failure],
    kernels: Sequence[str | None],
    variables: bool,
    weights: bool,
) -> list[Outcome]:
    program, task = trainer.program, trainer.task
    masks, others, rest = jax.device_get((program.masks(state), state.params.others, state.rest))
    whole = jax.device_get(program.variables(state)) if variables else None
    effective = jax.device_get(program.weights(state)) if weights else None
    examples: dict[str, np.ndarray] = {}
    if trainer.resumable and task.examined is not None:
        outputs = jax.device_get(program.outputs(state, trainer.test))
        inputs = jax.device_get(trainer.test[0][:EXAMPLES])
        examples = {"inputs": np.broadcast_to(inputs, (len(seeds), *inputs.shape)), "outputs": outputs}
    masked = task.net(task.numbers).learner.has_masks
    reported = [f"test_{name}" for name in ("loss", *task.metrics)]
    outcomes = []
    for index, (seed, rows) in enumerate(zip(seeds, history, strict=True)):
        last = rows[-1] if rows else {}
        final = {"seed": seed} | {name: last.get(name, float("nan")) for name in (*reported, "remaining_weights")}
        failure = failures.get(index)
        final["frozen"] = kernels[index]
        final |= {"failed_epoch": failure and failure.epoch, "failed_reason": failure and failure.reason}
        own = None if failure else {name: mask[index] for name, mask in masks.items()}
        one = None if failure or whole is None else _of_seed(whole, index)
        # Of a dense net no weights are kept, without which the rest is useless.
        values = _values(*_of_seed((others, rest), index)) if masked and not failure else {}
        outputs = {} if failure else _of_seed(examples, index)
        kept = None if failure or effective is None else _of_seed(effective, index)
        outcomes.append(Outcome(rows, final, own, one, values, outputs, kept))
    return outcomes


def _of_seed(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _values(others: Any, rest: Any) -> dict[str, np.ndarray]:
    leaves = {("params", *path): leaf for path, leaf in flatten(others).items()} | flatten(rest)
    return {path_name(path): np.asarray(leaf) for path, leaf in leaves.items()}
