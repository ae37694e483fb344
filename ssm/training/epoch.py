"""One epoch of many seeds as one compiled program: batches scanned, seeds vectorised or looped, state donated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Bool, Float, Int

from ssm.learners.base import changes_state
from ssm.supermask import Supermask, assembled, module_collections, split
from ssm.training.batches import (
    INIT,
    TEST,
    augmentation_key,
    count_samples,
    epoch_batches,
    seed_key,
    step_key,
    steps_per_epoch,
)
from ssm.training.halves import AXIS, Halves, added, own_halves
from ssm.training.metrics import MaskCounts, count
from ssm.training.seeds import alone, loop_over, over_active, where_active
from ssm.training.settings import pinned
from ssm.training.step import (
    Params,
    State,
    StepInputs,
    drawn_weights,
    effective_weights,
    oriented,
    training_step,
)
from ssm.training.task import EXAMPLES, Numbers, SeedLoop, Task
from ssm.training.units import Sizes, live_units, narrowed, reordered, with_first

Devices: TypeAlias = Sequence[Any]  # of jax.Device, which type checkers take for a variable


class Begin(NamedTuple):
    """What a seed begins with: its number (uint32), and the numbers of its net (float32)."""

    seed: Any  # arrays of NumPy or JAX
    numbers: Numbers


class EpochInputs(NamedTuple):
    """What an epoch takes, per seed: its number, the rates of every step [steps], and whether it is to be trained.

    One that is not (it has made its last reduction, say) stays as it is.
    """

    seed: Any  # of uint32, float32, float32 and bool: arrays of NumPy or JAX
    learning_rates: Any
    weight_decays: Any
    active: Any


class Info(NamedTuple):
    """What an epoch reports, per seed: means of loss and metrics by name; `layers` counts mask elements by layer.

    `live` says of a task's hidden layers which of the units that were trained are not dead for good.
    """

    train: Mapping[str, Float[Array, ""]]
    test: Mapping[str, Float[Array, ""]]
    finite: Array
    layers: Mapping[str, MaskCounts]
    live: Mapping[str, Bool[Array, " units"]] = {}


class Program(NamedTuple):
    """The compiled functions of a task; each takes and returns arrays with a leading seed axis.

    start: Begin -> State.  epoch: (State (donated), EpochInputs, epoch, fixed order [n] or None, train, test) ->
    (State, Info).  epoch_of: sizes -> the same of the first so many units of each hidden layer.
    reorder: (State, orders) -> State with its hidden units in another order.  masks: State -> int8 masks by layer.
    weights: State -> the masked layers' weights by layer, as they are evaluated.
    variables: State -> the Supermask's variables.
    outputs: (State, test) -> the examined net's outputs of the first test samples, None without one.
    `place` puts an array with a seed axis, and `share` one without, on the devices: by the `shardings` of both.
    lower: (sizes, the arguments of `epoch` or their shapes) -> that program, to be compiled ahead of time.
    """

    start: Callable[..., State]
    epoch: Callable[..., tuple[State, Info]]
    epoch_of: Callable[[Sizes], Callable[..., tuple[State, Info]]]
    reorder: Callable[..., State]
    masks: Callable[..., dict[str, Array]]
    weights: Callable[..., dict[str, Array]]
    variables: Callable[..., dict[str, Any]]
    outputs: Callable[..., Any]
    place: Callable[[Any], Any]
    share: Callable[[Any], Any]
    shardings: tuple[NamedSharding, NamedSharding]
    lower: Callable[..., jax.stages.Lowered]


def layer_name(path: str) -> str:
    """Return a layer's name from its kernel's path: `Dense_0/kernel` is `Dense_0`."""
    return path.removesuffix("/kernel")


def make_program(task: Task, *, loop: SeedLoop, devices: Devices, apart: bool = False) -> Program:
    """Return the program of a task for seeds spread evenly over `devices`.

    `map` runs a device's seeds one after another, `vmap` all at once.  `apart` gives each half of a seed's batches a
    device of its own, in a task of such halves under `map`.
    """
    mesh = Mesh(np.asarray(devices, object).reshape(-1, 2 if apart else 1), ("seeds", AXIS))
    # A GPU is kept busy by whole batches, and a vectorised loop would compute both halves for all seeds.
    task = replace(task, halves=task.halves and loop == "map" and devices[0].platform == "cpu")
    spread, shared = PartitionSpec("seeds"), PartitionSpec()

    def jitted(device_part, specs, **options):
        """Compile a function of a device's own seeds."""
        return jax.jit(
            jax.shard_map(device_part, mesh=mesh, in_specs=specs, out_specs=spread, check_vma=False), **options
        )

    def spread_out(mapped):
        # To trace it, and to run it: settings are part of what a compiled program is found by.
        return pinned()(lambda *args: mapped(*args))

    def over_seeds(function, specs):
        """Map a function of one seed over the leading axis of the arguments that are spread."""

        def device_part(count, *args):
            own = tuple(arg for arg, spec in zip(args, specs, strict=True) if spec == spread)

            def one(own):
                rest = iter(own)
                return alone(function)(
                    *(next(rest) if spec == spread else arg for arg, spec in zip(args, specs, strict=True))
                )

            return loop_over(one, own, count) if loop == "map" else jax.vmap(one)(own)

        mapped = spread_out(jitted(device_part, (shared, *specs)))

        def call(*args):
            stacked = next(arg for arg, spec in zip(args, specs, strict=True) if spec == spread)
            return mapped(np.int32(len(jax.tree.leaves(stacked)[0]) // mesh.shape["seeds"]), *args)

        return call

    @cache
    def jitted_epoch(sizes: Sizes):
        def device_epoch(state, given, *more):
            one = alone(lambda own: _epoch_of_first(task, sizes, *own, *more))
            if loop == "map":
                return over_active(one, state, given)
            after, info = jax.vmap(one)((state, given))
            return (where_active(given.active, after, state) if task.stops else after), info

        return jitted(device_epoch, (spread, spread) + (shared,) * 4, donate_argnums=0)

    @cache
    def epoch_of(sizes: Sizes):
        return spread_out(jitted_epoch(sizes))

    shardings = NamedSharding(mesh, spread), NamedSharding(mesh, shared)
    place, share = (pinned()(partial(jax.device_put, device=sharding)) for sharding in shardings)
    return Program(
        start=over_seeds(partial(_start, task), (spread,)),
        epoch=epoch_of(()),
        epoch_of=epoch_of,
        reorder=over_seeds(partial(_reordered, task), (spread, spread)),
        masks=over_seeds(partial(_final_masks, task), (spread,)),
        weights=over_seeds(partial(_final_weights, task), (spread,)),
        variables=over_seeds(partial(_variables, task), (spread,)),
        outputs=over_seeds(partial(_outputs, task), (spread, shared)),
        place=place,
        share=share,
        shardings=shardings,
        lower=pinned()(lambda sizes, *args: jitted_epoch(sizes).lower(*args)),
    )


def _start(task: Task, begin: Begin) -> State:
    net = task.net(begin.numbers)
    variables = initial_variables(net, seed_key(begin.seed), task.example)
    layers, others, learner, fixed = split(variables)
    params = Params(oriented(task, layers), others)
    return State(
        params, oriented(task, learner), task.optimizer(0.0, 0.0).init(params), module_collections(variables), fixed
    )


def initial_variables(net: Supermask, key: Array, example: Any) -> dict[str, Any]:
    """Return the variables that a seed's key gives a net."""
    arguments = example if isinstance(example, tuple) else (example,)
    return dict(net.init(jax.random.fold_in(key, INIT), *arguments))


def _epoch_of_first(task: Task, sizes: Sizes, state: State, *rest: Any) -> tuple[State, Info]:
    """Return the state and the information after an epoch of the first so many units of each hidden layer."""
    if not sizes:
        return _epoch(task, state, *rest)
    assert task.hidden is not None
    own = replace(task.hidden.resized(dict(sizes)), halves=task.halves)
    after, info = _epoch(own, narrowed(task.hidden, state, sizes, transposed=task.transposed), *rest)
    return with_first(task.hidden, state, after, sizes, transposed=task.transposed), info


def _reordered(task: Task, state: State, orders: Mapping[str, Array]) -> State:
    assert task.hidden is not None
    return reordered(task.hidden, state, orders, transposed=task.transposed)


def _epoch(
    task: Task,
    state: State,
    given: EpochInputs,
    epoch: Int[Array, ""],
    order: Int[Array, " n"] | None,
    train: Any,
    test: Any,
) -> tuple[State, Info]:
    net = task.net(task.numbers)  # what depends on a seed's own numbers is in the state
    samples = count_samples(train)
    key = seed_key(given.seed)
    sizes = {"samples": samples, "batch_size": task.batch_size, "passes": task.passes}
    indices, valids = epoch_batches(key, epoch, order, **sizes, reshuffles=task.reshuffles)
    augmentation = augmentation_key(key, epoch)
    fixed = {"fixed": state.fixed} if changes_state(net.learner) else {"fixed": state.fixed, "learner": state.learner}

    halves = own_halves(given.active) if task.halves else None

    def step(carry, now):
        seed, sums = carry
        number, index, valid, learning_rate, weight_decay = now
        inputs, targets = task.batch(train, index, jax.random.fold_in(augmentation, number))
        counted = (epoch * len(indices)).astype(jnp.int32) + number
        rates = learning_rate, weight_decay
        step_inputs = StepInputs(counted, inputs, targets, valid, step_key(key, counted), *rates, halves)
        # What no step changes is a constant of the scan, not part of its carry.
        seed, more = training_step(task, net, seed._replace(**fixed), step_inputs)
        return (seed._replace(**dict.fromkeys(fixed)), jax.tree.map(jnp.add, sums, more)), None

    zeros = {name: jnp.zeros((), jnp.float32) for name in ("loss", *task.metrics)}
    steps = jnp.arange(len(indices), dtype=jnp.int32), indices, valids, given.learning_rates, given.weight_decays
    (after, sums), _ = lax.scan(step, (state._replace(**dict.fromkeys(fixed)), zeros), steps)
    after = after._replace(**fixed)
    means = {name: total / (samples * task.passes) for name, total in sums.items()}
    return after, _info(task, net, state, after, means, test, halves, key)


def _info(
    task: Task,
    net: Supermask,
    before: State,
    after: State,
    train: Mapping[str, Array],
    test: Any,
    halves: Halves | None,
    key: Array,
) -> Info:
    evaluated = _evaluate(task, net, after, test, halves, key)
    finite = jnp.isfinite(train["loss"]) & jnp.isfinite(evaluated["loss"])
    for leaf in jax.tree.leaves((after.params, after.rest)):
        finite &= jnp.all(jnp.isfinite(leaf))
    old, new = _int8_masks(net, before), _int8_masks(net, after)
    layers = {layer_name(path): count(new[path], old[path], after.params.layers[path]) for path in new}
    live = live_units(task.hidden, net, after, transposed=task.transposed) if task.hidden else {}
    return Info(train, evaluated, finite, layers, live)


def _evaluate(
    task: Task, net: Supermask, state: State, test: Any, halves: Halves | None, key: Array
) -> dict[str, Array]:
    """Return the means of loss and metrics over the test samples, of a learner that draws also over its draws."""
    if net.learner.draw is None:
        return _evaluate_once(task, net, state, test, halves, None)

    def one(number: Array) -> dict[str, Array]:
        own = jax.random.fold_in(jax.random.fold_in(key, TEST), number)
        return _evaluate_once(task, net, state, test, halves, own)

    return jax.tree.map(lambda values: values.mean(0), lax.map(one, jnp.arange(net.learner.draws)))


def _evaluate_once(
    task: Task, net: Supermask, state: State, test: Any, halves: Halves | None, key: Array | None
) -> dict[str, Array]:
    """Return the means over the test samples, of weights that are drawn by a key, or of those of evaluation."""
    samples = count_samples(test)
    batch = min(task.evaluation_batch, samples)
    steps = steps_per_epoch(samples, batch)
    indices = jnp.arange(steps * batch, dtype=jnp.int32).reshape(steps, batch)
    weights = effective_weights(task, net, state, None) if key is None else drawn_weights(task, net, state, key)
    variables = {"params": weights, **state.rest}

    def step(sums, index):
        inputs, targets = task.batch(test, jnp.minimum(index, samples - 1), None)
        outputs, _ = task.apply(net.module, variables, inputs, train=False)
        valid = index < samples
        values = {"loss": task.loss(outputs, targets)}
        values |= {name: metric(outputs, targets) for name, metric in task.metrics.items()}
        return {
            name: sums[name] + jnp.sum(value * valid.astype(value.dtype), dtype=jnp.float32)
            for name, value in values.items()
        }, None

    zeros = {name: jnp.zeros((), jnp.float32) for name in ("loss", *task.metrics)}
    if halves is None:
        sums, _ = lax.scan(step, zeros, indices)
    else:
        pad = jnp.full((steps % 2, batch), samples, jnp.int32)  # an index beyond the last sample is padding
        both = jnp.concatenate([indices, pad]).reshape(2, -1, batch)
        sums = added(halves, lambda own: lax.scan(step, zeros, own)[0], both)
    return {name: total / samples for name, total in sums.items()}


def _outputs(task: Task, state: State, test: Any) -> Any:
    """Return what a seed's net makes of the first test samples, as it is evaluated."""
    if task.examined is None:
        return None
    net = task.net(task.numbers)
    inputs, _ = task.batch(test, jnp.arange(min(EXAMPLES, count_samples(test)), dtype=jnp.int32), None)
    variables = {"params": effective_weights(task, net, state, None), **state.rest}
    return task.apply(task.examined, variables, inputs, train=False)[0]


def _int8_masks(net: Supermask, state: State) -> dict[str, Array]:
    """Return the masks by path, in the orientation in which they are trained."""
    return {path: mask.astype(jnp.int8) for path, mask in net.learner.masks(state.params.layers, state.learner).items()}


def _final_masks(task: Task, state: State) -> dict[str, Array]:
    masks = oriented(task, _int8_masks(task.net(task.numbers), state))
    return {layer_name(path): mask for path, mask in masks.items()}


def _final_weights(task: Task, state: State) -> dict[str, Array]:
    weights = task.net(task.numbers).learner.weights(state.params.layers, state.learner, None)
    return {layer_name(path): weight for path, weight in oriented(task, weights).items()}


def _variables(task: Task, state: State) -> dict[str, Any]:
    layers, learner = oriented(task, (state.params.layers, state.learner))
    return assembled(layers, state.params.others, learner, state.fixed, state.rest)
