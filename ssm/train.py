"""Training a group of seeds: the loop over epochs on the host, and the records it makes."""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ssm import build, gauge, metrics, optim, plateau
from ssm.config import Config
from ssm.convolution import Form
from ssm.data import Dataset
from ssm.devices import seed_loop
from ssm.epoch import Devices, Given, Info, Program, SeedLoop, State, make_program
from ssm.plateau import PlateauRule
from ssm.supermask import Supermask

Row = dict[str, Any]


class Progress(NamedTuple):
    """What a caller is told after each epoch of a group."""

    seeds: Sequence[int]
    epoch: int
    rows: Sequence[Row]  # this epoch's, of the seeds that are still finite
    seconds: float  # wall time of the epoch for the whole group


class Result(NamedTuple):
    """What a group of seeds ends with; `masks` and `params` are those of the seeds that stayed finite."""

    history: list[Row]
    finals: list[Row]  # per seed: seed, test_accuracy, remaining_weights, failed_epoch (None if it stayed finite)
    masks: dict[int, dict[str, np.ndarray]]
    params: dict[int, Any]


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


def make_trainer(
    config: Config,
    dataset: Dataset,
    *,
    devices: Devices | None = None,
    loop: SeedLoop | None = None,
    form: Form = "auto",
) -> Trainer:
    """Return a trainer whose groups of seeds are spread evenly over `devices` (all by default).

    `loop` says how a device runs its seeds (`ssm.devices.seed_loop` by default); `form`, that of the convolutions.
    """
    devices = list(devices or jax.devices())
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
    return Trainer(config, net, program, *shared, samples=len(dataset.train_labels), devices=len(devices))


def schedule(config: Config, epoch: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the learning rate and weight decay of every step of an epoch (counted from 0), float32 [steps] each.

    Under a plateau schedule both are constant, and each seed has a factor of its own.
    """
    step = np.arange(epoch * steps, (epoch + 1) * steps)
    factor = np.ones(steps, np.float32)
    if config.schedule == "exponential":
        factor = optim.exponential(step, rate=config.decay_rate, steps=config.decay_steps, staircase=config.staircase)
    return np.float32(config.learning_rate) * factor, np.float32(config.weight_decay) * factor


def plateau_rule(config: Config) -> PlateauRule | None:
    """Return the rule by which a configuration reduces its rates, None where it doesn't wait for a plateau."""
    if config.schedule == "exponential":
        return None
    options = {name: getattr(config, name) for name in ("patience", "cooldown", "min_delta", "reductions")}
    return PlateauRule(kind=config.schedule, factor=config.plateau_factor, **options)


def train(trainer: Trainer, seeds: Sequence[int], report: Callable[[Progress], None] = lambda progress: None) -> Result:
    """Train a group of seeds to the end; a seed's numbers don't depend on the others in the group.

    A seed whose loss or scores turn non-finite is set aside with its epoch: it has no further rows and no masks.
    One whose plateau schedule has made its last reduction stops there, and keeps what it has.
    """
    config, program = trainer.config, trainer.program
    steps = build.steps_per_epoch(trainer.samples, config.batch_size) * config.passes
    padded = list(seeds) + [seeds[-1]] * (-len(seeds) % trainer.devices)  # the copies are never reported
    state = program.start(program.place(np.asarray(padded, np.uint32)))
    rule, plateaus = plateau_rule(config), dict.fromkeys(seeds, plateau.start())
    history: list[Row] = []
    failed: dict[int, int] = {}
    done: set[int] = set()
    for epoch in range(config.epochs):
        started = time.perf_counter()
        rates = schedule(config, epoch, steps)
        scales = {seed: np.float32(plateaus[seed].scale) for seed in seeds}
        given = Given(
            np.asarray(padded, np.uint32),
            np.asarray([scales[seed] for seed in padded], np.float32),
            np.asarray([seed not in done for seed in padded]),
        )
        state, info = program.epoch(
            state,
            program.place(given),
            *program.share((np.uint32(epoch), *rates)),
            trainer.order,
            trainer.train,
            trainer.test,
        )
        info = jax.device_get(info)  # waits for the epoch to end
        seconds = time.perf_counter() - started
        running = [(index, seed) for index, seed in enumerate(seeds) if seed not in done]
        rows = []
        for index, seed in running:
            if not info.finite[index]:
                failed[seed] = epoch + 1
                done.add(seed)
                continue
            first = (float(rate[0] * scales[seed]) for rate in rates)
            rows.append(_row(info, index, seed, epoch, seconds / len(running), *first))
            if rule:
                plateaus[seed] = plateau.update(rule, plateaus[seed], float(info.train_loss[index]))
                if plateau.stopped(rule, plateaus[seed]):
                    done.add(seed)
        history += rows
        report(Progress(seeds, epoch + 1, rows, seconds))
        if len(done) == len(set(seeds)):
            break
    return _result(program, state, seeds, history, failed)


def _row(info: Info, index: int, seed: int, epoch: int, seconds: float, learning_rate, weight_decay) -> Row:
    scores = {name: float(getattr(info, name)[index]) for name in Info._fields[:4]}
    layers = metrics.shares(info.layers, index)
    rest = {"seconds": seconds, "learning_rate": float(learning_rate), "weight_decay": float(weight_decay)}
    total = {name: layers.pop(name) for name in ("remaining_weights", "flips")}
    return {"seed": seed, "epoch": epoch + 1, **scores, **total, **rest, **layers}


def _result(program: Program, state: State, seeds: Sequence[int], history: list[Row], failed: dict[int, int]) -> Result:
    masks, params = jax.device_get(program.finish(state))
    last = {row["seed"]: row for row in history}
    finals = [
        {
            "seed": seed,
            "test_accuracy": last[seed]["test_accuracy"] if seed in last else float("nan"),
            "remaining_weights": last[seed]["remaining_weights"] if seed in last else float("nan"),
            "failed_epoch": failed.get(seed),
        }
        for seed in seeds
    ]
    whole = {seed: index for index, seed in enumerate(seeds) if seed not in failed}
    return Result(
        history,
        finals,
        {seed: {name: mask[index] for name, mask in masks.items()} for seed, index in whole.items()},
        {seed: jax.tree.map(lambda leaf, i=index: leaf[i], params) for seed, index in whole.items()},
    )
