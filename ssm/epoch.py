"""One epoch of many seeds as one compiled program: batches scanned, seeds vectorised or looped, state donated."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Float, Int

from ssm import losses
from ssm.build import INIT, ORDER, Split, seed_key, steps_per_epoch
from ssm.config import Config
from ssm.data.standardize import standardize
from ssm.gauge import StepForm, from_step, to_step, transpose
from ssm.metrics import MaskCounts, count
from ssm.optim import sgdw
from ssm.supermask import Supermask, effective_weights, masks

SeedLoop: TypeAlias = Literal["map", "vmap"]
Devices: TypeAlias = Sequence[Any]  # of jax.Device, which type checkers take for a variable
EVALUATION_BATCH = 1000


class State(NamedTuple):
    """What goes on from epoch to epoch, per seed: the step form of the net and the optimiser's state."""

    form: StepForm
    optimiser: Any


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

    start: seeds [s] -> State.  epoch: (State (donated), seeds [s], epoch, learning rates [steps], weight decays
    [steps], fixed order [n] or None, train, test) -> (State, Info).  finish: State -> (masks int8 by layer, params).
    `place` puts an array with a seed axis, and `share` one without, on the devices.
    """

    start: Callable[..., State]
    epoch: Callable[..., tuple[State, Info]]
    finish: Callable[..., tuple[dict[str, Array], Any]]
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
    out of the step (`ssm.gauge.holds`).  `map` runs a device's seeds one after another, `vmap` all at once.
    """
    mesh = Mesh(list(devices), ("seeds",))
    spread, shared = PartitionSpec("seeds"), PartitionSpec()

    def over_seeds(function, specs, **options):
        """Map a function of one seed over the leading axis of the arguments that are spread."""

        def device_part(*args):
            own = tuple(arg for arg, spec in zip(args, specs, strict=True) if spec == spread)

            def one(own):
                rest = iter(own)
                return function(*(next(rest) if spec == spread else arg for arg, spec in zip(args, specs, strict=True)))

            return lax.map(one, own) if loop == "map" else jax.vmap(one)(own)

        mapped = jax.shard_map(device_part, mesh=mesh, in_specs=specs, out_specs=spread, check_vma=False)
        return jax.jit(mapped, **options)

    start = partial(_start, net, config, example, gauge)
    epoch = partial(_epoch, net, config)
    finish = partial(_finish, net)
    return Program(
        start=over_seeds(start, (spread,)),
        epoch=over_seeds(epoch, (spread, spread) + (shared,) * 6, donate_argnums=0),
        finish=over_seeds(finish, (spread,)),
        place=partial(jax.device_put, device=NamedSharding(mesh, spread)),
        share=partial(jax.device_put, device=NamedSharding(mesh, shared)),
    )


def _optimiser(config: Config, learning_rate, weight_decay) -> optax.GradientTransformation:
    return sgdw(learning_rate, weight_decay, momentum=config.momentum, nesterov=config.nesterov, decay=config.decay)


def _start(net: Supermask, config: Config, example: Array, gauge: bool, seed: Array) -> State:
    variables = net.init(jax.random.fold_in(seed_key(seed), INIT), example)
    form = to_step(variables["frozen"], variables["params"], gauge=gauge)
    return State(form, _optimiser(config, 0.0, 0.0).init(form.params))


def _epoch(
    net: Supermask,
    config: Config,
    state: State,
    seed: Array,
    epoch: Int[Array, ""],
    learning_rates: Float[Array, " steps"],
    weight_decays: Float[Array, " steps"],
    order: Int[Array, " n"] | None,
    train: Split,
    test: Split,
) -> tuple[State, Info]:
    samples, batch = train.labels.shape[0], config.batch_size
    steps = steps_per_epoch(samples, batch)
    before = _int8_masks(net, state.form)
    if order is None:
        order = reshuffled(seed_key(seed), epoch, samples)
    indices = jnp.pad(order, (0, steps * batch - samples)).reshape(steps, batch)
    counts = (jnp.arange(steps * batch) < samples).astype(jnp.float32).reshape(steps, batch)

    def step(carry, now):
        (params, optimiser), (loss_sum, hit_sum) = carry
        index, present, learning_rate, weight_decay = now

        def loss_fn(params):
            losses_, hits = _losses(net, config, state.form.frozen, params, _take(train, index))
            total = jnp.sum(losses_ * present)
            return total / jnp.sum(present), (total, jnp.sum(hits * present))

        gradients, (loss, hit) = jax.grad(loss_fn, has_aux=True)(params)
        updates, optimiser = _optimiser(config, learning_rate, weight_decay).update(gradients, optimiser, params)
        params = optax.apply_updates(params, updates)
        return ((params, optimiser), (loss_sum + loss, hit_sum + hit)), None

    zero = jnp.zeros((), jnp.float32)
    start = ((state.form.params, state.optimiser), (zero, zero))
    ((params, optimiser), (loss, hits)), _ = lax.scan(step, start, (indices, counts, learning_rates, weight_decays))
    form = state.form._replace(params=params)
    test_loss, test_accuracy = _evaluate(net, config, form, test)
    after = _int8_masks(net, form)
    finite = jnp.isfinite(loss) & jnp.isfinite(test_loss)
    for leaf in jax.tree.leaves(params):
        finite &= jnp.all(jnp.isfinite(leaf))
    layers = {layer_name(path): count(after[path], before[path]) for path in after}
    return State(form, optimiser), Info(loss / samples, hits / samples, test_loss, test_accuracy, finite, layers)


def reshuffled(key: Array, epoch: Array | int, samples: int) -> Int[Array, " samples"]:
    """Return a seed's own order of the data in an epoch, from the seed's key."""
    key = jax.random.fold_in(jax.random.fold_in(key, ORDER), epoch)
    # One sort of random bits; jax.random.permutation sorts twice, which costs 3 % of an epoch on a CPU.
    return jnp.argsort(jax.random.bits(key, (samples,)))


def _take(data: Split, index: Array) -> tuple[Array, Array]:
    part = Split(*(field[index] for field in data))
    return standardize(part.images, part.mean, part.scale), part.labels


def _losses(net: Supermask, config: Config, frozen, params, batch) -> tuple[Array, Array]:
    """Return each sample's loss and whether its class was found."""
    images, labels = batch
    weights = transpose(effective_weights(net.learner, frozen, params))
    logits: Array = net.module.apply({"params": weights}, images)  # type: ignore[assignment]
    return losses.by_name(config.loss)(logits, labels), jnp.argmax(logits, -1) == labels


def _evaluate(net: Supermask, config: Config, form: StepForm, test: Split) -> tuple[Array, Array]:
    samples = test.labels.shape[0]
    batch = min(EVALUATION_BATCH, samples)
    steps = steps_per_epoch(samples, batch)
    indices = jnp.arange(steps * batch).reshape(steps, batch)

    def step(sums, index):
        losses_, hits = _losses(net, config, form.frozen, form.params, _take(test, jnp.minimum(index, samples - 1)))
        present = index < samples
        return (sums[0] + jnp.sum(losses_ * present), sums[1] + jnp.sum(hits & present)), None

    (loss, hits), _ = lax.scan(step, (jnp.zeros((), jnp.float32), jnp.zeros((), jnp.int32)), indices)
    return loss / samples, hits / samples


def _int8_masks(net: Supermask, form: StepForm) -> dict[str, Array]:
    """Return the masks as the user sees them, signs of the frozen weights taken back out, in the step's orientation."""
    found = {path: mask.astype(jnp.int8) for path, mask in masks(net.learner, form.frozen, form.params).items()}
    return found | {"/".join(path): found["/".join(path)] * sign for path, sign in form.signs.items()}


def _finish(net: Supermask, state: State) -> tuple[dict[str, Array], Any]:
    found = {layer_name(path): mask for path, mask in transpose(_int8_masks(net, state.form)).items()}
    return found, from_step(state.form)
