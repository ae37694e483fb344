"""Training of any masked net on any arrays, with many seeds at once: `ssm.train`."""

import hashlib
import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jaxtyping import Int8

from ssm.errors import UserError, require_function
from ssm.learners.base import may_be_transposed
from ssm.optim import exponential, sgdw
from ssm.plateau import PlateauRule
from ssm.runs.folder import Run, read_summary
from ssm.runs.history import Row, read_history
from ssm.runs.job import Job, program_hash
from ssm.runs.memory import in_fitting_groups
from ssm.runs.names import member_key
from ssm.runs.progress import reporter
from ssm.runs.reader import read_finished
from ssm.runs.run import RunOptions, plan, run_job
from ssm.supermask import Supermask, module_collections
from ssm.training.batches import (
    Images,
    count_samples,
    images_on_device,
    plain_batch,
    standardized_batch,
    steps_per_epoch,
)
from ssm.training.devices import seed_loop
from ssm.training.epoch import initial_variables
from ssm.training.loop import Member, Outcome, make_trainer, train_members
from ssm.training.settings import pinned
from ssm.training.task import Task, accuracy, apply_module, one_sample, rated

Metric = Callable[[Any, Any], Array]


@dataclass(frozen=True, eq=False)
class Result:
    """What training ends with.

    seeds: those that finished, ascending; the arrays below have them along their first axis.
    masks: final masks by layer, int8 [seeds, ...].
    history: one row per seed and epoch: seed, epoch, train_loss, test_loss, each metric as train_NAME and test_NAME,
        remaining_weights, flips (shares, 0 to 1), seconds, learning_rate, weight_decay; by layer LAYER:remaining, ...
    failures: by seed that was excluded, the epoch and the reason.
    variables: the Supermask's variables, every leaf [seeds, ...]; None where the seeds are in a run's folder.
    folder: the run's folder, None without `out`.
    """

    seeds: list[int]
    masks: dict[str, Int8[np.ndarray, "seeds ..."]]
    history: list[Row]
    failures: dict[int, tuple[int, str]]
    variables: Any = None
    folder: Path | None = None

    def final(self, name: str) -> np.ndarray:
        """Return the last value of a column of the history, [seeds]."""
        last = {row["seed"]: row[name] for row in self.history}
        return np.asarray([last[seed] for seed in self.seeds])


def mean_cross_entropy(logits: Array, labels: Array) -> Array:
    """Return the cross-entropy of logits [batch, ..., classes] and integer labels [batch, ...], a mean for each sample."""
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return loss if loss.ndim == 1 else loss.reshape(len(loss), -1).mean(-1)


@pinned()
def train(
    net: Supermask,
    *,
    data: tuple[Any, Any],
    test: tuple[Any, Any],
    seeds: int | Sequence[int] = 5,
    epochs: int = 100,
    batch_size: int = 128,
    optimizer: Any = sgdw,
    learning_rate: float = 0.05,
    weight_decay: float = 5e-4,
    schedule: Callable[[np.ndarray], Any] | PlateauRule | None = None,
    loss: Metric = mean_cross_entropy,
    metrics: Mapping[str, Metric] | None = None,
    batch: Callable[[Any, Array, Array | None], tuple[Any, Any]] | None = None,
    apply: Callable[..., tuple[Any, Mapping[str, Any]]] = apply_module,
    passes: int = 1,
    order: np.ndarray | None = None,
    out: str | os.PathLike[str] | None = None,
    about: Mapping[str, Any] | None = None,
    options: RunOptions | None = None,
) -> Result:
    """Train many seeds of a masked net at once; the defaults are the paper's recipe.

    A seed's result depends on the seed and the other arguments alone, never on which seeds run beside it, nor on JAX's
    settings: all is computed in 32 bits, under jax_enable_x64, too (`ssm.training.settings`).

    Args:
        net: `Supermask(module, learner=...)` around any Flax module.
        data: (x, y) to train on, two pytrees of arrays [n, ...] of any rank and dtype; they lie on the device as they
            are, numbers of 64 bits in 32.  A batch's x is the module's argument (a tuple: its arguments).  x of uint8 with three or four axes are
            images: [n, height, width] or [n, height, width, channels], kept as bytes and standardised image by image.
        test: as `data`; evaluated after every epoch.
        seeds: how many (from 0), or which.
        epochs: at most.
        batch_size: samples per step; a short last batch is padded, and the padding counts nowhere.
        optimizer: an optax transformation, or a function of the traced rates that makes one: `ssm.sgdw`, `optax.adamw`,
            `partial(optax.sgd, momentum=0.9)`; it is given `learning_rate` and `weight_decay` where it names them.
        learning_rate, weight_decay: at the start.
        schedule: steps (counted from 0) -> factor of both rates, such as `optax.cosine_decay_schedule(1.0, 1000)`; or a
            `PlateauRule` on the training loss, for each seed by itself.  Default: 0.96 every 10 epochs.
        loss: (outputs, y) -> one value for each sample.
        metrics: by name, as `loss`.  Default: accuracy of logits and integer labels.
        batch: (data, index [batch], key) -> (x, y), in place of gathering; key is None in evaluation.  `data` is the pair
            (x, y), or for images `ssm.training.batches.Images`.
        apply: runs the module (`ssm.training.task.apply_module`).
        passes: passes over the data in an epoch.
        order: one order of the samples for all epochs and seeds; by default each has its own.
        out: a run's folder: seeds that it holds are not trained again, a stopped run is resumed, and status, tables and
            page read it.  Needs a metric named accuracy.
        about: what is to be recorded of the run beside what can be seen of the arguments.
        options: execution options; none changes results.

    Raises:
        UserError: for arguments that don't fit together, or as the run's folder does.
    """
    if not isinstance(net, Supermask):
        raise UserError(f"net must be a masked module, Supermask(module); got {type(net).__name__}.")
    numbers = _seeds(seeds)
    for name, value in (("epochs", epochs), ("batch_size", batch_size), ("passes", passes)):
        if not (isinstance(value, int) and value > 0):
            raise UserError(f"{name} must be a whole number above 0; got {value!r}.")
    for name, value in (("learning_rate", learning_rate), ("weight_decay", weight_decay)):
        if not (isinstance(value, Real) and 0 <= float(value) < math.inf):
            raise UserError(f"{name} must be a number of at least 0, and a schedule is `schedule`; got {value!r}.")
    if metrics is not None and not isinstance(metrics, Mapping):
        raise UserError(f"metrics must be functions by name, {{'accuracy': ...}} say; got {metrics!r}.")
    if "loss" in (metrics or {}):
        raise UserError("metrics: the history has a column of the name 'loss' already, that of `loss`; take another name.")
    for name, value in {"loss": loss, **(metrics or {})}.items():
        require_function(value, name, "optax.squared_error", 2)
    require_function(apply, "apply", "ssm.training.task.apply_module", 3)
    if batch is not None:
        require_function(batch, "batch", "ssm.training.batches.plain_batch", 3)
    samples = _check_data("data", data)
    _check_data("test", test)
    if _is_images(data[0]) != _is_images(test[0]):
        raise UserError("x of data and of test must both be images (uint8, three or four axes), or neither.")
    if batch_size > samples:
        raise UserError(f"batch_size={batch_size} is larger than the data: {samples} samples.")
    metrics = {"accuracy": accuracy} if metrics is None else dict(metrics)
    if order is not None and sorted(np.asarray(order).ravel().tolist()) != list(range(samples)):
        raise UserError(f"order must be the numbers 0 to {samples - 1} in some order, one for each sample of data.")
    if options is not None and not isinstance(options, RunOptions):
        raise UserError(f"options must be ssm.RunOptions(...); got {options!r}.")
    on_device, own_batch = _on_device(data), batch or (standardized_batch if _is_images(data[0]) else plain_batch)
    rule = schedule if isinstance(schedule, PlateauRule) else None
    steps = steps_per_epoch(samples, batch_size) * passes
    rates = partial(_rates, learning_rate, weight_decay, _factor(schedule, rule, steps))
    task = Task(
        net=lambda numbers: net,
        numbers={},
        example=one_sample(own_batch, on_device),
        batch=own_batch,
        apply=apply,
        loss=loss,
        metrics=metrics,
        optimizer=rated(optimizer),
        epochs=epochs,
        batch_size=batch_size,
        passes=passes,
        stops=bool(rule and rule.reductions),
        # An optimiser of one's own may look at rows and columns.
        transposed=may_be_transposed(net.learner) and optimizer is sgdw,
    )
    _check_outputs(task, on_device)
    options = options or RunOptions()
    if out is None:
        members = [Member(seed=seed, schedule=rates, plateau=rule, key=str(seed)) for seed in dict.fromkeys(numbers)]
        return _in_memory(task, on_device, _on_device(test), order, members, options)
    if "accuracy" not in metrics:
        raise UserError("out=: a run's folder keeps accuracy, so that one of metrics must have this name.")
    settings = _settings(net, epochs, batch_size, passes, optimizer, learning_rate, weight_decay, schedule, loss)
    settings["about"] = dict(about or {})
    fingerprint = _fingerprint((data, test, order))

    def member(seed: int) -> Member:
        return Member(seed=seed, schedule=rates, plateau=rule, key=member_key(settings, seed))

    job = Job(
        settings=settings,
        folder=lambda out: out,
        source="arrays in memory",
        about={
            "data": fingerprint,
            "program": program_hash(task, on_device),
            "rates": _fingerprint(rates(np.arange(epochs * steps))),
            "image_shape": np.shape(jax.tree.leaves(data[0])[0])[1:],
            "class_names": (),
        },
        make_task=lambda: task,
        make_data=lambda: (on_device, _on_device(test), order),
        member=member,
    )
    run = run_job(job, numbers, out=Path(out), options=options)
    return _from_folder(run, numbers)


def _seeds(seeds: Any) -> list[int]:
    """Return the seeds that `train` is given; raises UserError for what is neither a number nor some."""
    numbers: list[int | None] = []
    if (count := _whole(seeds)) is not None:
        numbers = list(range(count))
    elif isinstance(seeds, Iterable):
        numbers = [_whole(seed) for seed in seeds]
    whole = [seed for seed in numbers if seed is not None and 0 <= seed < 2**31]
    if not whole or len(whole) < len(numbers):
        raise UserError(f"seeds must be a number of seeds, or some from 0 to 2**31 - 1; got {seeds!r}.")
    return whole


def _whole(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None


def _check_data(name: str, data: Any) -> int:
    """Return the number of samples; raises UserError unless data is two pytrees of arrays of one length."""
    if not (isinstance(data, tuple) and len(data) == 2):
        raise UserError(f"{name} must be a pair (x, y) of arrays, or of trees of arrays; got {type(data).__name__}.")
    leaves = jax.tree.leaves(data)
    lengths = {np.shape(leaf)[:1] for leaf in leaves}
    if len(lengths) != 1 or lengths == {()} or lengths == {(0,)}:
        shapes = ", ".join(str(list(np.shape(leaf))) for leaf in leaves) or "none"
        raise UserError(f"{name}: all arrays need the same first axis, the samples; their shapes are {shapes}.")
    return len(leaves[0])


def _is_images(x: Any) -> bool:
    return hasattr(x, "dtype") and x.dtype == np.uint8 and np.ndim(x) in (3, 4)


def _on_device(data: tuple[Any, Any]) -> Any:
    x, y = data
    if not _is_images(x):
        return jax.tree.map(_as_array, (x, y))
    x = np.asarray(x)
    return images_on_device(x[..., None] if x.ndim == 3 else x, jax.tree.map(_as_array, y))


def _as_array(leaf: Any) -> Array:
    """Return a leaf on the device, in 32 bits where it has 64: JAX narrows NumPy's arrays, but not its own."""
    wide = isinstance(leaf, Array) and leaf.dtype != jax.dtypes.canonicalize_dtype(leaf.dtype)
    return jnp.asarray(np.asarray(leaf) if wide else leaf)


def _factor(schedule: Any, rule: PlateauRule | None, steps: int) -> Callable[[np.ndarray], Any]:
    if rule is not None:
        return np.ones_like
    if schedule is None:
        return partial(exponential, rate=0.96, steps=10 * steps)
    if not callable(schedule):
        raise UserError(f"schedule must be a function of the step, or a PlateauRule; got {schedule!r}.")
    return schedule


def _rates(learning_rate: float, weight_decay: float, factor: Callable[[np.ndarray], Any], steps: np.ndarray):
    factors = np.broadcast_to(np.asarray(factor(steps), np.float32), steps.shape)
    return np.float32(learning_rate) * factors, np.float32(weight_decay) * factors


def _check_outputs(task: Task, data: Any) -> None:
    """Raise UserError unless loss and metrics give one value for each sample."""

    def values(data):
        net = task.net({})
        variables = initial_variables(net, jax.random.key(0), task.example)
        inputs, targets = task.batch(data, jnp.zeros(2, jnp.int32), None)
        plain = {"params": net.weights(variables), **module_collections(variables)}
        outputs, _ = task.apply(net.module, plain, inputs, train=False)
        return {"loss": task.loss(outputs, targets)} | {
            name: metric(outputs, targets) for name, metric in task.metrics.items()
        }

    for name, value in jax.eval_shape(values, data).items():
        if value.shape != (2,):
            raise UserError(
                f"{name} must give one value for each sample, [batch]; for two samples it gave {list(value.shape)}."
            )


def _in_memory(task: Task, data: Any, test: Any, order: Any, members: list[Member], options: RunOptions) -> Result:
    group, devices = plan(len(members), len(jax.local_devices()), options.group)
    loop = options.loop or seed_loop(task)
    places = jax.local_devices()
    trainer = make_trainer(task, data, test, order=order, devices=places[:devices], loop=loop)
    outcomes: dict[str, Outcome] = {}

    def train(left: Sequence[Member], group: int) -> Iterator[Sequence[Member]]:
        fitting = trainer
        if group < devices:
            fitting = make_trainer(task, data, test, order=order, devices=places[:group], loop=loop)
        parts = [left[start : start + group] for start in range(0, len(left), group)]
        with reporter(total=len(parts) * task.epochs, epochs=task.epochs) as progress:
            for part in parts:
                own = train_members(
                    fitting, part, progress, due=lambda epoch: False, on_bad_seed=options.on_bad_seed, variables=True
                )
                outcomes.update(zip((member.key for member in part), own, strict=True))
                yield part

    in_fitting_groups(members, group, train, lambda group, why: options.log(f"warning: {why}"))
    by_seed = sorted(((member, outcomes[member.key]) for member in members), key=lambda pair: pair[0].seed)
    whole = [(member.seed, one) for member, one in by_seed if one.masks is not None]
    return Result(
        seeds=[seed for seed, _ in whole],
        masks=_stacked([one.masks for _, one in whole]),
        history=[row for _, one in by_seed for row in one.history],
        failures={
            member.seed: (one.final["failed_epoch"], one.final["failed_reason"])
            for member, one in by_seed
            if one.masks is None
        },
        variables=_stacked([one.variables for _, one in whole]),
    )


def _stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees) if trees else {}


def _from_folder(run: Run, seeds: Sequence[int]) -> Result:
    summary = read_summary(run.folder)
    failures = {entry["seed"]: (entry["epoch"], entry.get("reason") or "") for entry in summary["failed"]}
    whole = sorted(set(seeds) - set(failures))
    finished = read_finished(run.folder)
    return Result(
        seeds=whole,
        masks=finished.masks(whole) if whole else {},
        history=[row for row in read_history(run.folder / "history.csv") if row["seed"] in set(seeds)],
        failures={seed: why for seed, why in failures.items() if seed in set(seeds)},
        folder=run.folder,
    )


def _settings(
    net: Supermask, epochs, batch_size, passes, optimizer, learning_rate, weight_decay, schedule, loss
) -> dict[str, Any]:
    return {
        "model": type(net.module).__name__,
        "method": "own" if net.learner.has_masks else "baseline",
        "init": "own",
        "preset": "own",
        "dataset": "arrays",
        "epochs": epochs,
        "batch_size": batch_size,
        "passes": passes,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "optimizer": _name(optimizer),
        "schedule": _name(schedule),
        "loss": _name(loss),
        "module": repr(net.module),
        "others": net.others,
    }


def _name(value: Any) -> str:
    if isinstance(value, partial):
        return f"{_name(value.func)}{value.args}{value.keywords}"
    return str(getattr(value, "__qualname__", None) or re.sub(r" at 0x[0-9a-f]+", "", repr(value)))


def _fingerprint(tree: Any) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for leaf in jax.tree.leaves(tree):
        array = np.ascontiguousarray(leaf)
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
