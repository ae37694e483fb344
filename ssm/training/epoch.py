"""One epoch of many seeds as one compiled program: batches scanned, seeds vectorised or looped, state donated."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Float, Int

from ssm import losses
from ssm.data.augment import crop_and_flip
from ssm.data.standardize import restandardize, standardize
from ssm.optim import sgdw
from ssm.recipes.build import INIT, ORDER, Split, augmentation_key, seed_key, steps_per_epoch
from ssm.recipes.config import Config
from ssm.supermask import OWN, Supermask, effective_weights, masks
from ssm.thresholds import with_parameter
from ssm.training.gauge import StepForm, from_step, to_step, transpose
from ssm.training.metrics import MaskCounts, count
from ssm.trees import flatten

SeedLoop: TypeAlias = Literal["map", "vmap"]
Devices: TypeAlias = Sequence[Any]  # of jax.Device, which type checkers take for a variable
EVALUATION_VALUES = 1000 * 28 * 28  # pixels of a batch: 1,000 digits, or 250 images of CIFAR


class State(NamedTuple):
    """What goes on from epoch to epoch, per seed.

    The step form of the net, the optimiser's state, and the net's other variables (averages of batch statistics).
    """

    form: StepForm
    optimiser: Any
    rest: Mapping[str, Any]


class Begin(NamedTuple):
    """What a seed begins with: its number (uint32), and the number of its threshold rule (float32)."""

    seed: Any  # arrays of NumPy or JAX
    threshold: Any


class Given(NamedTuple):
    """What an epoch is told, per seed: its number, the rates of every step [steps], and whether it still trains."""

    seed: Any  # of uint32, float32, float32 and bool: arrays of NumPy or JAX
    learning_rates: Any
    weight_decays: Any
    active: Any


class Info(NamedTuple):
    """What an epoch reports, per seed; `layers` counts mask elements by layer name."""

    train_loss: Float[Array, ""]
    train_accuracy: Float[Array, ""]
    test_loss: Float[Array, ""]
    test_accuracy: Float[Array, ""]
    finite: Array
    layers: Mapping[str, MaskCounts]


class Program(NamedTuple):
    """The compiled functions of a run; each takes and returns arrays with a leading seed axis.

    start: Begin -> State.  epoch: (State (donated), Given, epoch, fixed order [n] or None, train, test) ->
    (State, Info).  finish: State -> (masks int8 by layer, params, the module's other
    collections).
    `place` puts an array with a seed axis, and `share` one without, on the devices.
    """

    start: Callable[..., State]
    epoch: Callable[..., tuple[State, Info]]
    finish: Callable[..., tuple[dict[str, Array], Any, Any]]
    place: Callable[[Any], Any]
    share: Callable[[Any], Any]


def layer_name(path: str) -> str:
    """Return a layer's name from its kernel's path: `Dense_0/kernel` is `Dense_0`."""
    return path.removesuffix("/kernel")


def make_program(
    net: Supermask, config: Config, example: Array, *, gauge: bool, loop: SeedLoop, devices: Devices
) -> Program:
    """Return the program of a configuration for seeds spread evenly over `devices`.

    `example` is a batch of one standardised image, for its shape alone.  `gauge` says that the frozen signs may be left
    out of the step (`ssm.training.gauge.holds`).  `map` runs a device's seeds one after another, `vmap` all at once.
    """
    mesh = Mesh(list(devices), ("seeds",))
    spread, shared = PartitionSpec("seeds"), PartitionSpec()

    def over_seeds(function, specs, **options):
        """Map a function of one seed over the leading axis of the arguments that are spread."""

        def device_part(count, *args):
            own = tuple(arg for arg, spec in zip(args, specs, strict=True) if spec == spread)

            def one(own):
                rest = iter(own)
                return function(*(next(rest) if spec == spread else arg for arg, spec in zip(args, specs, strict=True)))

            return loop_over(one, own, count) if loop == "map" else jax.vmap(one)(own)

        specs_ = (shared, *specs)
        mapped = jax.jit(
            jax.shard_map(device_part, mesh=mesh, in_specs=specs_, out_specs=spread, check_vma=False), **options
        )

        def call(*args):
            spread_out = next(arg for arg, spec in zip(args, specs, strict=True) if spec == spread)
            return mapped(np.int32(len(jax.tree.leaves(spread_out)[0]) // len(mesh.devices)), *args)

        call._cache_size = mapped._cache_size  # type: ignore[attr-defined]  # for the test that counts compilations
        return call

    start = partial(_start, net, config, example, gauge)
    epoch = partial(_epoch, net, config)
    finish = partial(_finish, net)
    return Program(
        start=over_seeds(start, (spread,)),
        epoch=over_seeds(epoch, (spread, spread) + (shared,) * 4, donate_argnums=1),
        finish=over_seeds(finish, (spread,)),
        place=partial(jax.device_put, device=NamedSharding(mesh, spread)),
        share=partial(jax.device_put, device=NamedSharding(mesh, shared)),
    )


def loop_over(function: Callable[[Any], Any], stacked: Any, count: Int[Array, ""]) -> Any:
    """Map a function over the leading axis of a tree's arrays, one after another, as `jax.lax.map` does.

    `count`, the length of that axis, is known only as the program runs: XLA would take a loop of one turn apart,
    compile its body otherwise, and a seed alone would be rounded otherwise than in a group.  For the same reason no
    axis has length 1 in the loop: a single turn has a neighbour, which is never computed.
    """
    length = len(jax.tree.leaves(stacked)[0])
    if length == 1:
        stacked = jax.tree.map(lambda array: jnp.concatenate([array, array]), stacked)

    def at(index: Array | int) -> Any:
        return jax.tree.map(lambda array: lax.dynamic_index_in_dim(array, index, keepdims=False), stacked)

    shapes = jax.eval_shape(lambda: function(at(0)))
    made = jax.tree.map(lambda leaf: jnp.zeros((max(length, 2), *leaf.shape), leaf.dtype), shapes)

    def turn(index: Array, made: Any) -> Any:
        result = function(at(index))
        return jax.tree.map(lambda array, part: array.at[index].set(part), made, result)

    return jax.tree.map(lambda array: array[:length], lax.fori_loop(0, count, turn, made))


def _optimiser(config: Config, learning_rate, weight_decay) -> optax.GradientTransformation:
    return sgdw(learning_rate, weight_decay, momentum=config.momentum, nesterov=config.nesterov, decay=config.decay)


def _start(net: Supermask, config: Config, example: Array, gauge: bool, begin: Begin) -> State:
    net = net.clone(threshold=with_parameter(net.threshold, begin.threshold))  # type: ignore[arg-type]
    variables = net.init(jax.random.fold_in(seed_key(begin.seed), INIT), example)
    form = to_step(variables["frozen"], variables["params"], gauge=gauge)
    return State(form, _optimiser(config, 0.0, 0.0).init(form.params), others(variables))


def others(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the collections that a Supermask keeps for its module alone, as the module names them."""
    return {name: tree["net"] for name, tree in variables.items() if name not in OWN}


def _epoch(
    net: Supermask,
    config: Config,
    state: State,
    given: Given,
    epoch: Int[Array, ""],
    order: Int[Array, " n"] | None,
    train: Split,
    test: Split,
) -> tuple[State, Info]:
    arguments = (state, given, epoch, order, train, test)
    if not config.reductions:
        return _trained(net, config, *arguments)
    # A seed that has had its last reduction stays as it is while the others of its group go on.
    return lax.cond(given.active, partial(_trained, net, config), partial(_kept, net, config), *arguments)


def _trained(
    net: Supermask, config: Config, state: State, given: Given, epoch, order, train, test
) -> tuple[State, Info]:
    samples = train.labels.shape[0]
    key = seed_key(given.seed)
    indices, counts = _batches(config, key, epoch, order, samples)
    augmentation = augmentation_key(key, epoch)

    def step(carry, now):
        (params, optimiser, rest), (loss_sum, hit_sum) = carry
        number, index, present, learning_rate, weight_decay = now
        images, labels = take(train, index)
        images = augmented(config, jax.random.fold_in(augmentation, number), images)

        def loss_fn(params):
            weights = transpose(effective_weights(net.learner, state.form.frozen, params))
            logits, after = apply(net, weights, rest, images, present=present > 0)
            losses_ = losses.by_name(config.loss)(logits, labels)
            total = jnp.sum(losses_ * present)
            return total / jnp.sum(present), (total, jnp.sum((jnp.argmax(logits, -1) == labels) * present), after)

        gradients, (loss, hit, rest) = jax.grad(loss_fn, has_aux=True)(params)
        updates, optimiser = _optimiser(config, learning_rate, weight_decay).update(gradients, optimiser, params)
        params = optax.apply_updates(params, updates)
        return ((params, optimiser, rest), (loss_sum + loss, hit_sum + hit)), None

    zero = jnp.zeros((), jnp.float32)
    start = ((state.form.params, state.optimiser, state.rest), (zero, zero))
    steps = jnp.arange(len(indices)), indices, counts, given.learning_rates, given.weight_decays
    ((params, optimiser, rest), (loss, hits)), _ = lax.scan(step, start, steps)
    seen = samples * config.passes
    after = State(state.form._replace(params=params), optimiser, rest)
    return after, _info(net, config, state, after, (loss / seen, hits / seen), test)


def _kept(net: Supermask, config: Config, state: State, given, epoch, order, train, test):
    """Return a seed's state as it is; its information is not reported again, so that it costs nothing."""
    shapes = jax.eval_shape(partial(_info, net, config), state, state, (jnp.zeros(()), jnp.zeros(())), test)
    return state, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


def _info(net: Supermask, config: Config, before: State, after: State, train, test: Split) -> Info:
    test_loss, test_accuracy = _evaluate(net, config, after, test)
    finite = jnp.isfinite(train[0]) & jnp.isfinite(test_loss)
    for leaf in jax.tree.leaves((after.form.params, after.rest)):
        finite &= jnp.all(jnp.isfinite(leaf))
    old, new = _int8_masks(net, before.form), _int8_masks(net, after.form)
    scores = {"/".join(path): leaf for path, leaf in flatten(after.form.params["net"]).items()}
    layers = {layer_name(path): count(new[path], old[path], scores[path]) for path in new}
    return Info(train[0], train[1], test_loss, test_accuracy, finite, layers)


def apply(net: Supermask, weights: Any, rest: Mapping[str, Any], images: Array, *, present: Array | None):
    """Return a training batch's logits with plain weights, and the module's other variables after it."""
    variables = {"params": weights, **rest}
    logits, after = net.module.apply(variables, images, train=True, present=present, mutable=list(rest))  # type: ignore[misc]
    return logits, after


def augmented(config: Config, key: Array, images: Array) -> Array:
    """Return a batch of standardised images as the configuration's augmentation leaves them."""
    if config.augment == "none":
        return images
    images = crop_and_flip(key, images)
    return restandardize(images) if config.augment == "crop_flip_standardize" else images


def _batches(config: Config, key: Array, epoch: Array, order: Array | None, samples: int) -> tuple[Array, Array]:
    """Return the indices [steps, batch] of an epoch, and 1 for each sample, 0 for the padding of a last batch."""
    batch, passes = config.batch_size, config.passes
    steps = steps_per_epoch(samples, batch)
    orders = [pass_order(key, epoch * passes + number, order, samples) for number in range(passes)]
    indices = [jnp.pad(one, (0, steps * batch - samples)).reshape(steps, batch) for one in orders]
    counts = (jnp.arange(steps * batch) < samples).astype(jnp.float32).reshape(steps, batch)
    return jnp.concatenate(indices), jnp.tile(counts, (passes, 1))


def _evaluate(net: Supermask, config: Config, state: State, test: Split) -> tuple[Array, Array]:
    samples = test.labels.shape[0]
    batch = min(max(1, EVALUATION_VALUES // math.prod(test.images.shape[1:]) // 50 * 50), samples)
    steps = steps_per_epoch(samples, batch)
    indices = jnp.arange(steps * batch).reshape(steps, batch)
    variables = {"params": transpose(effective_weights(net.learner, *state.form[:2])), **state.rest}

    def step(sums, index):
        images, labels = take(test, jnp.minimum(index, samples - 1))
        logits: Array = net.module.apply(variables, images)  # type: ignore[assignment]
        present = index < samples
        loss = jnp.sum(losses.by_name(config.loss)(logits, labels) * present)
        return (sums[0] + loss, sums[1] + jnp.sum((jnp.argmax(logits, -1) == labels) & present)), None

    (loss, hits), _ = lax.scan(step, (jnp.zeros((), jnp.float32), jnp.zeros((), jnp.int32)), indices)
    return loss / samples, hits / samples


def pass_order(key: Array, number: Array | int, order: Array | None, samples: int) -> Int[Array, " samples"]:
    """Return a seed's order of the data in a pass (counted from 0): the fixed one, or one of its own."""
    return reshuffled(key, number, samples) if order is None else order


def reshuffled(key: Array, number: Array | int, samples: int) -> Int[Array, " samples"]:
    """Return a seed's own order of the data in a pass, from the seed's key."""
    key = jax.random.fold_in(jax.random.fold_in(key, ORDER), number)
    # One sort of random bits; jax.random.permutation sorts twice, which costs 3 % of an epoch on a CPU.
    return jnp.argsort(jax.random.bits(key, (samples,)))


def take(data: Split, index: Array) -> tuple[Array, Array]:
    """Return the standardised images and the labels of these indices."""
    part = Split(*(field[index] for field in data))
    return standardize(part.images, part.mean, part.scale), part.labels


def _int8_masks(net: Supermask, form: StepForm) -> dict[str, Array]:
    """Return the masks as the user sees them, signs of the frozen weights taken back out, in the step's orientation."""
    found = {path: mask.astype(jnp.int8) for path, mask in masks(net.learner, form.frozen, form.params).items()}
    return found | {"/".join(path): found["/".join(path)] * sign for path, sign in form.signs.items()}


def _finish(net: Supermask, state: State) -> tuple[dict[str, Array], Any, Any]:
    found = {layer_name(path): mask for path, mask in transpose(_int8_masks(net, state.form)).items()}
    return found, from_step(state.form), state.rest
