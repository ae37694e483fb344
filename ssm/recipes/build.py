"""From the names of a configuration to objects: the module, its learner, the task that trains them, and its seeds."""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array

from ssm import initializers, learners, losses, optim, thresholds
from ssm.data import Dataset
from ssm.data.augment import crop_and_flip, shift
from ssm.data.dataset import ArrayDataset
from ssm.data.standardize import standardized
from ssm.errors import UserError
from ssm.initializers import Initializer
from ssm.learners import Learner
from ssm.learners.base import changes_state, may_be_transposed
from ssm.models import LITERATURE as TABLE
from ssm.models import MODELS, RESNETS
from ssm.models.description import HIDDEN, PAIRS
from ssm.models.graph import NETS, Architecture
from ssm.ops import matmul
from ssm.ops.convolution import Form, conv_general_dilated
from ssm.plateau import PlateauRule
from ssm.recipes.config import SCORED, Config, milestones_of
from ssm.recipes.literature import LITERATURE, learned_by
from ssm.recipes.method_options import EXEMPT, PRETRAINED, parsed_options, typed_options
from ssm.recipes.objects import load_object
from ssm.recipes.presets import CONV_NETS, ELUS_FACTOR, OWN, kind
from ssm.recipes.published import TABLE_NETS
from ssm.supermask import Supermask
from ssm.thresholds import Rule
from ssm.training.batches import Images, fixed_order, images_on_device, plain_batch, standardized_batch
from ssm.training.epoch import Devices
from ssm.training.loop import Member, Trainer, make_trainer
from ssm.training.settings import pinned
from ssm.training.task import Hidden, Numbers, SeedLoop, Task, Units, accuracy, apply_module

WORTH = {"fcn": 1e11, "conv": 1e13}
"""Operations that a smaller net must save a seed, to be worth one more program; most are compiled meanwhile."""

SYMMETRIC = (thresholds.absolute, thresholds.fraction_of_max)
"""Rules whose two thresholds are -tau and tau."""


def kernel_init(config: Config) -> Initializer:
    """Return the initialiser of the kernels that a configuration names."""
    options = {"paper_formula": {"p0": config.p0}}
    options |= {scale: {"factor": config.factor} for scale in ("he", "elus")}
    init = initializers.by_name(config.init, config.weight_distribution, **options.get(config.init, {}))
    if config.precision != "bfloat16" or config.method == "baseline":
        return init
    # A frozen constant that is exact in bfloat16 makes every effective weight exact in the products, too.
    return lambda key, shape, dtype=jnp.float32: matmul.round_to_bfloat16(init(key, shape, dtype))


def score_init(config: Config) -> Initializer:
    """Return the initialiser of the scores; ELUS has the model's own factor, whatever that of the weights is."""
    options = {"factor": ELUS_FACTOR[kind(config.model)]} if config.score_scale == "elus" else {}
    return initializers.by_name(config.score_scale, config.score_distribution, **options)


def threshold(config: Config) -> Rule:
    """Return the rule of the thresholds that a configuration names."""
    return thresholds.parse(config.threshold, one_sided=config.method == "binary")


def learner(config: Config, rule: Rule, *, folded: bool | None = None) -> Learner:
    """Return the learner of a configuration under a rule whose number may be traced.

    `folded` (`ssm.learners.signed`): by default wherever it holds.
    """
    if config.method == "baseline":
        return learners.dense()
    if config.method == "own":
        return own_learner(config)
    if named := learned_by(config.method, config.density):
        return literature_learner(named, config, rule)
    options: dict[str, Any] = {"scores": score_init(config), "threshold": rule}
    if config.method == "binary":
        return learners.binary(**options)
    return learners.signed(**options, folded=can_fold(config) if folded is None else folded)


def check_options(config: Config) -> None:
    """Raise UserError for an option of a method of the related work that is out of range, naming it."""
    if named := learned_by(config.method, config.density):
        literature_learner(named, config, threshold(config))


def literature_learner(method: str, config: Config, rule: Rule) -> Learner:
    """Return the learner of a method of the related work; raises UserError for one of its options out of range."""
    entry = LITERATURE[method]
    factory = getattr(learners, entry.factory)
    options = typed_options(method, config.method_options)
    warm, exempt = options.pop(PRETRAINED, 0), options.pop(EXEMPT, "")
    named = inspect.signature(factory).parameters
    objects: dict[str, Any] = {"redraw": kernel_init(config)}
    if method in SCORED:
        objects |= {"scores": score_init(config), "threshold": rule}
    if entry.dial:
        objects["density"] = config.density
    typed = {"density": "--density"} | {name: f"--{method}.{name.replace('_', '-')}" for name in options}
    with _as_typed(typed):
        made = factory(**{name: value for name, value in (objects | options).items() if name in named})
    if exempt:
        names = exempt.split("+")
        if not all(names) or "*" in names:
            raise UserError(f"--{method}.exempt={exempt} must name layers, Conv_0 or Conv_0+Dense_1 say, and not all.")
        made = learners.by_layer({**dict.fromkeys(names, learners.dense()), "*": made})
    with _as_typed({"steps": f"--{method}.{PRETRAINED}"}):
        return learners.pretrained(made, warm) if warm else made


@contextmanager
def _as_typed(options: Mapping[str, str]) -> Iterator[None]:
    """Name an argument as the command line has it in an error that begins with the argument's name."""
    try:
        yield
    except UserError as error:
        name, _, rest = str(error).partition(" ")
        raise UserError(f"{options[name]} {rest}." if name in options else str(error)) from None


def made_by(factory: Any, option: str, text: str, **options: Any) -> Any:
    """Return what a factory of the user's makes of the options that it names; raises UserError if it can't."""
    try:
        named = inspect.signature(factory).parameters
        return factory(**{name: value for name, value in options.items() if name in named})
    except TypeError as error:
        raise UserError(f"--{option}={text} cannot be called without arguments: {error}.") from error


def own_learner(config: Config) -> Learner:
    """Return the learner that the user's factory makes; raises UserError if it makes none."""
    factory = load_object(config.learner, "learner")
    made = factory if isinstance(factory, Learner) else made_by(factory, "learner", config.learner)
    if not isinstance(made, Learner):
        raise UserError(f"--learner={config.learner} must make an ssm.Learner; it made {type(made).__name__}.")
    return made


def can_fold(config: Config) -> bool:
    """Return whether the signs of the frozen weights may be folded into the scores (`ssm.learners.signed`)."""
    rule = threshold(config)
    # At a threshold of 0 the mask of a score of 0 is +1, which is not odd.
    symmetric = isinstance(rule, SYMMETRIC) and thresholds.parameter(rule) > 0
    return config.method == "signed" and config.weight_distribution == "signed_constant" and symmetric


def build(
    config: Config,
    *,
    classes: int = 10,
    form: Form = "auto",
    numbers: Numbers | None = None,
    folded: bool | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Supermask:
    """Return the masked net of a configuration with `classes` outputs.

    `form` forces a form of the convolutions (`ssm.ops.convolution`): they differ in speed, and in rounding alone.
    `sizes` are those of hidden dense layers, by name, where units are left out.
    `numbers` has the threshold's number, possibly traced, in place of the configuration's.
    """
    rule = threshold(config)
    if numbers:
        rule = thresholds.with_parameter(rule, numbers["threshold"])
    # Trained others: scales and offsets of batch normalisation, where the net has them, and all that a user's has.
    masked = partial(Supermask, learner=learner(config, rule, folded=folded), others="trained")
    init = kernel_init(config)
    if kind(config.model) == OWN:
        return masked(own_module(config, classes), kernel_init=init)
    options = {"kernel_init": init, "sizes": tuple(sorted((sizes or {}).items()))}
    return masked(network(config, classes, precision=config.precision, form=form, **options))


def own_module(config: Config, classes: int) -> nn.Module:
    """Return the user's own net; its class or factory is given `classes` if it names it.

    Raises UserError if the name is no Flax module.
    """
    factory = load_object(config.model, "model")
    if not isinstance(factory, nn.Module):
        factory = made_by(factory, "model", config.model, classes=classes)
    if not isinstance(factory, nn.Module):
        raise UserError(f"--model={config.model} must be a Flax module or make one; it is {type(factory).__name__}.")
    return factory


def network(
    net: Config | Architecture, classes: int, *, precision: str, form: Form = "auto", **options: Any
) -> nn.Module:
    """Return the network that `net` names, with the products and convolutions of a precision; `options` are Flax's."""
    rounds = precision == "bfloat16"
    if isinstance(net, Config):
        options |= {"activation": net.activation, "batch_norm": net.batch_norm}
    dense = matmul.bfloat16_dot_general if rounds else None
    if precision in matmul.TF32:
        dense = partial(matmul.tf32_dot_general, algorithm=matmul.TF32[precision])
    if net.model in RESNETS:
        options |= {name: getattr(net, name) for name in ("projections", "batch_norm", "stem_affine")}
    if net.model in TABLE_NETS and isinstance(net, Config) and net.dropout:
        options["dropout"] = net.dropout
    return (MODELS[net.model] if net.model in MODELS else TABLE[net.model])(
        classes=classes,
        width=net.width,
        dot_general=dense,
        conv_general_dilated=partial(conv_general_dilated, form=form, bfloat16=rounds),
        **options,
    )


def check_precision(config: Config) -> None:
    """Raise UserError where the device that would train a configuration lacks its products."""
    if config.precision in matmul.TF32 and jax.default_backend() == "cpu":
        raise UserError(f"--precision={config.precision} needs an NVIDIA GPU; on a CPU take float32 or bfloat16.")


def check_inputs(config: Config, shape: tuple[int, ...]) -> None:
    """Raise UserError where a built-in net of convolutions is to be given anything else than images."""
    if config.model != "fcn" and kind(config.model) != OWN and len(shape) != 3:
        raise UserError(
            f"--model={config.model} takes images [height, width, channels]; an input of the data is {list(shape)}: "
            "take --model=fcn, or a net of your own."
        )


@pinned()
def make_task(
    config: Config,
    *,
    image_shape: tuple[int, ...],
    classes: int,
    form: Form = "auto",
    folded: bool | None = None,
    dtype: Any = np.uint8,
    live: bool = True,
    sizes: Mapping[str, int] | None = None,
) -> Task:
    """Return the task of a configuration for images of a shape, [height, width, channels]; the rest as in `build`.

    Inputs of another `dtype` than uint8, or another rank, reach the net as they are.  `live` says whether hidden units
    that are dead for good are left out of training.
    """
    images = dtype == np.uint8 and len(image_shape) == 3
    if not images and config.augment != "none":
        raise UserError(f"--augment={config.augment} is for uint8 images; the data has {np.dtype(dtype)} inputs.")
    options: dict[str, Any] = {"classes": classes, "form": form, "folded": folded}
    net = build(config, **options)
    resized = partial(make_task, config, image_shape=image_shape, dtype=dtype, **options)
    return Task(
        net=lambda numbers: build(config, numbers=numbers, sizes=sizes, **options),
        numbers=numbers_of(config),
        example=np.zeros((1, *image_shape), np.float32 if images else jax.dtypes.canonicalize_dtype(dtype)),
        batch=partial(image_batch, augment=config.augment) if images else plain_batch,
        apply=apply_module,
        loss=losses.by_name(config.loss),
        metrics={"accuracy": accuracy},
        optimizer=optimizer(config),
        epochs=config.epochs,
        batch_size=config.batch_size,
        passes=config.passes,
        reshuffles=config.order != "fixed_by_seed",
        stops=bool(config.reductions),
        transposed=may_be_transposed(net.learner),
        halves=can_be_halved(config, net.learner),
        hidden=hidden_layers(config, net, lambda sizes: resized(sizes=sizes)) if live else None,
        accelerator_loop=accelerator_loop(config.model),
        # XLA's own convolutions: the faster forms would take longer to compile than the outputs are worth.
        examined=network(config, classes, precision=config.precision, form="xla") if exported(config) else None,
    )


def can_be_halved(config: Config, learner: Learner) -> bool:
    """Return whether a net is computed in halves of a batch: a sample's output is its own alone, and the loss theirs.

    The FCN's products are too small for it: 15 % of an epoch (docs/speed.md).
    """
    alone = config.batch_norm == "none" and learner.penalty is None and learner.variances is None
    return config.model in PAIRS and alone


def optimizer(config: Config) -> Callable[[Any, Any], Any]:
    """Return the optimiser of a configuration as a function of the rates."""
    if config.optimizer == "adam":
        return partial(optim.adam, decay=config.decay)
    return partial(optim.sgdw, momentum=config.momentum, nesterov=config.nesterov, decay=config.decay)


def hidden_layers(config: Config, net: Supermask, resized: Callable[[Mapping[str, int]], Task]) -> Hidden | None:
    """Return the hidden dense layers whose dead units training may leave out; None where a unit might come back.

    Convolutions keep nearly all of their channels, and a ResNet's blocks read each other's.
    """
    sizes, learner = HIDDEN.get(config.model, ()), net.learner
    returns = learner.settled is None or changes_state(learner) or learner.penalty is not None
    decays = (
        config.optimizer == "sgd"
        and config.decay == "decoupled"
        and 0 <= config.weight_decay <= 1
        and 0 <= config.momentum < 1
    )
    plain = config.batch_norm == "none" and config.activation != "sign"  # a unit without inputs puts out 0
    if not sizes or returns or not decays or not plain:
        return None
    kernels = [f"Dense_{number}/kernel" for number in range(len(sizes) + 1)]
    return Hidden(
        units={
            before.removesuffix("/kernel"): Units(fed=(before,), used=(after,)) for before, after in pairwise(kernels)
        },
        resized=resized,
        reach=partial(optim.reach, momentum=config.momentum, nesterov=config.nesterov),
        worth=WORTH["fcn" if config.model == "fcn" else "conv"],
    )


def accelerator_loop(model: str) -> SeedLoop | None:
    """Return how a GPU runs a model's seeds by default; None for a net of the user's, where its kernels tell.

    The Conv nets' convolutions are large enough one seed at a time.  The FCN's products and a ResNet's many small
    kernels are not: one after another they take as long as launching them.  Source: docs/gpu.md.
    """
    return None if kind(model) == OWN or model in TABLE_NETS else "map" if model in CONV_NETS else "vmap"


def exported(config: Config) -> bool:
    """Return whether a configuration's nets can be exported from a run: the paper's, but for the dense ones."""
    return config.method in ("signed", "binary", *LITERATURE) and known_to_files(partial(getattr, config))


def known_to_files(setting: Callable[[str], Any]) -> bool:
    """Return whether the format of files knows the net that settings, by name, are of (docs/format.md).

    It has a mask of every layer.
    """
    if parsed_options(setting("method_options")).get(EXEMPT):
        return False
    plain = setting("batch_norm") == "none" or setting("model") in RESNETS
    return setting("model") in NETS and plain and setting("activation") == "elu"


def task_of(
    config: Config, dataset: Dataset, *, form: Form = "auto", folded: bool | None = None, live: bool = True
) -> Task:
    """Return the task of a configuration on its data set."""
    inputs = dataset.train_images
    shape = {"image_shape": inputs.shape[1:], "dtype": inputs.dtype}
    return make_task(config, classes=dataset.classes, form=form, folded=folded, live=live, **shape)


def numbers_of(config: Config) -> dict[str, float]:
    """Return the traced numbers of a configuration's net."""
    return {"threshold": float(thresholds.parameter(threshold(config)))}


def image_batch(data: Images, index: Array, key: Array | None, *, augment: str) -> tuple[Array, Array]:
    """Return a batch of standardised images, in training as the configuration's augmentation leaves them."""
    images, labels = standardized_batch(data, index, key)
    if key is None or augment == "none":
        return images, labels
    images = (shift if augment == "shift" else crop_and_flip)(key, images)
    return (standardized(images) if augment == "crop_flip_standardize" else images), labels


@pinned()
def parts(config: Config, dataset: Dataset) -> tuple[Any, Any, np.ndarray | None]:
    """Return the training and the test part of a data set on the device, and the fixed order, if it is asked for."""

    def on_device(inputs: np.ndarray, labels: np.ndarray) -> Any:
        with jax.ensure_compile_time_eval():  # a job keeps them: they must not be traced
            if isinstance(dataset, ArrayDataset):
                return jnp.asarray(inputs), jnp.asarray(labels)
            return images_on_device(inputs, labels)

    train = on_device(dataset.train_images, dataset.train_labels)
    test = on_device(dataset.test_images, dataset.test_labels)
    return train, test, fixed_order(len(dataset.train_labels)) if config.order == "fixed" else None


def trainer(
    config: Config,
    dataset: Dataset,
    *,
    devices: Devices | None = None,
    loop: SeedLoop | None = None,
    apart: bool = False,
    form: Form = "auto",
    folded: bool | None = None,
    live: bool = True,
    resumable: bool = False,
) -> Trainer:
    """Return the trainer of a configuration on its data set; options as in `make_task` and `make_trainer`."""
    task = task_of(config, dataset, form=form, folded=folded, live=live)
    train, test, order = parts(config, dataset)
    return make_trainer(task, train, test, order=order, devices=devices, loop=loop, apart=apart, resumable=resumable)


def member(config: Config, seed: int, *, key: str = "", run: str = "") -> Member:
    """Return a seed of a configuration, as the trainer takes it."""
    return Member(
        seed=seed,
        schedule=partial(rates, config),
        numbers=numbers_of(config),
        plateau=plateau_rule(config),
        key=key,
        run=run,
    )


def rates(config: Config, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the learning rate and weight decay at steps counted from 0, float32 each.

    Under a plateau schedule both are constant, and each seed has a factor of its own.
    """
    factor = np.ones(steps.shape, np.float32)
    if config.schedule == "exponential":
        factor = optim.exponential(steps, rate=config.decay_rate, steps=config.decay_steps, staircase=config.staircase)
    elif config.schedule == "cosine":
        factor = optim.cosine(steps, steps=config.decay_steps, cycles=config.cycles)
    elif config.schedule == "steps":
        reached = np.asarray([math.ceil(share * config.decay_steps) for share in milestones_of(config.milestones)])
        factor = np.float32(config.decay_rate) ** np.sum(steps[..., None] >= reached, axis=-1).astype(np.float32)
    # What is added to the gradient is multiplied by the learning rate anyway.
    constant = config.decay == "coupled" and config.schedule in ("cosine", "steps")
    decay = np.float32(config.weight_decay) * (np.ones_like(factor) if constant else factor)
    return np.float32(config.learning_rate) * factor, decay


def plateau_rule(config: Config) -> PlateauRule | None:
    """Return the rule by which a configuration reduces its rates, None where it doesn't wait for a plateau."""
    if config.schedule not in ("plateau", "authors_plateau"):
        return None
    options = {name: getattr(config, name) for name in ("patience", "cooldown", "min_delta", "reductions")}
    return PlateauRule(kind=config.schedule, factor=config.plateau_factor, **options)


def smaller_scale(config: Config) -> str:
    """Return what to do where the frozen weights are too large for the net to learn."""
    if config.init in ("elus", "he"):
        smaller = next((f for f in (initializers.ELUS_CONV, 1.0) if f < config.factor), config.factor / 2)
        return f"use a smaller --factor than {config.factor:.4g}, such as {smaller:.4g}"
    return "use a smaller scale, such as --init=he --factor=1"
