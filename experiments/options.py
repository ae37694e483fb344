"""The options of a run on the command line, and what they come to: a configuration, its data, and how it is run."""

import sys
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, get_args

import tyro

from ssm.errors import UserError

HINT = "(default: the preset's)"
Whole = Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint=HINT)]
Number = Annotated[float | None, tyro.conf.arg(metavar="X", help_behavior_hint=HINT)]
Text = Annotated[str | None, tyro.conf.arg(metavar="RULE", help_behavior_hint=HINT)]


def _choice(*names: str, hint: str = HINT):
    return tyro.conf.arg(metavar="{" + ",".join(names) + "}", help_behavior_hint=hint)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Train many seeds of one configuration.  What is not given comes from the preset; a run that is there already
    is completed, never repeated."""

    model: Annotated[str, tyro.conf.arg(metavar="NAME")] = "fcn"
    """Network: fcn, conv2, conv4, conv6, conv8, resnet20, resnet56 or resnet110; under --preset=published also those of
    the related work, vgg_small, vgg_small_1024, vgg_small_1024x2, vgg19, resnet18, wrn22_2; or your own Flax module,
    package.module:Name."""
    method: Annotated[str, tyro.conf.arg(metavar="NAME")] = "signed"
    """signed Supermask, binary Supermask, baseline (the dense net), or a method of the related work: masks over frozen
    weights (zhou, edge_popup, iterand, mpt, mpt_global, gem_miner, signed_top_k, variable_threshold, steered), weights
    trained and connections chosen (force, set, rigl, granet), or latent weights (twn, ttq, sca, lr_net, binary_connect,
    bnn, and bbg, an experiment).  With --help it shows the method's own options."""
    density: Number = None
    """Share of the weights that is left, of a method with such a dial (gem_miner: at most; twn: roughly).  signed then
    is steered, with its own recipe; ResNets, and all under the paper's presets, keep theirs.  0: the method's own rule
    without a dial (signed, twn, ttq)."""
    learner: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None
    """A learner of your own in place of --method: package.module:factory (docs/own-learner.md)."""
    init: Annotated[
        Literal["elus", "he", "xavier", "elu", "paper_formula"] | None,
        _choice("elus", "he", "xavier", "elu", "paper_formula"),
    ] = None
    """Scale of the frozen weights: elus, for the baseline elu, unless it is said here."""
    preset: Literal["default", "paper", "code", "sinn1", "sinn2", "best", "protocol", "published"] = "default"
    """Recipe: the paper's with what worked best here (default), the paper's own, its program's, its sparser SiNN 1 and
    2 (signed; fcn and Conv nets); best goes beyond it (the same nets; signed, baseline); to compare methods, all on one
    protocol (their default), or each as it was published."""
    dataset: str = "auto"
    """mnist, fashion_mnist, mnist5k (fcn), cifar10, cifar100 (the others), tfds:NAME, npz:FILE (arrays x_train,
    y_train, x_test, y_test), or idx:DIR (your files in MNIST's format and names: KMNIST, say); auto takes the model's
    own set if it can be had within 15 s, else mnist5k for mnist."""
    classes: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: the data set's)")] = None
    """Outputs of the net: an error unless the data set has as many classes."""
    data_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder with the data set's files, or its archive as it was downloaded (default: SSM_DATA_DIR, then the usual
    places, then a download)."""
    seeds: str = "5"
    """How many (50 is seeds 0 to 49), a range (10:20), or a list (3,7)."""
    width: Number = None
    """Factor on the sizes of all layers but the last."""
    projections: Whole = None
    """Projection blocks in each stage of a ResNet: 1, or 2 for resnet110 (its masked net in the paper has 2)."""
    batch_norm: Annotated[
        Literal["none", "frozen", "statistics", "affine"] | None, _choice("none", "frozen", "statistics", "affine")
    ] = None
    """Normalise by the batch (statistics), that with trained scale and offset (affine; rows "BN"), divide by a constant
    (frozen: ResNets), or do neither (none: the others)."""
    activation: Annotated[Literal["elu", "relu", "sign"] | None, _choice("elu", "relu", "sign")] = None
    """After each layer but the last; sign is that of binarised nets."""
    dropout: Number = None
    """Share of a Wide ResNet's activations that is dropped in training."""
    stem_affine: Annotated[bool | None, _choice("True", "False")] = None
    """Under --batch-norm=frozen, whether the first layer's scale and offset are trained nevertheless."""
    epochs: Whole = None
    """Epochs at most; a plateau schedule may end sooner."""
    passes: Whole = None
    """Passes over the data that make an epoch."""
    batch_size: Whole = None
    """Images per step."""
    validation: Whole = None
    """Hold out so many training images, the last, and test on these instead of the test set."""
    train_images: Whole = None
    """Train on the first so many images alone, as programs do that choose by the others; 0: on all."""
    augment: Annotated[
        Literal["none", "shift", "crop_flip", "crop_flip_standardize"] | None,
        _choice("none", "shift", "crop_flip", "crop_flip_standardize"),
    ] = None
    """Training images as they are, moved by up to one pixel at random, padded by 4, cropped and flipped at random, or
    standardised once more after that."""
    learning_rate: Number = None
    """Learning rate at the start."""
    weight_decay: Number = None
    """Weight decay at the start; it follows the learning rate's schedule."""
    decay: Annotated[Literal["decoupled", "coupled"] | None, _choice("decoupled", "coupled")] = None
    """Whether weight decay is independent of the learning rate (as in the authors' program) or part of the gradient."""
    optimizer: Annotated[Literal["sgd", "adam"] | None, _choice("sgd", "adam")] = None
    """SGD with momentum, or Adam."""
    schedule: Annotated[
        Literal["exponential", "plateau", "authors_plateau", "cosine", "steps"] | None,
        _choice("exponential", "plateau", "authors_plateau", "cosine", "steps"),
    ] = None
    """How rates fall: with time, or once the training loss no longer does, by the usual rule or the authors'.  Under
    cosine and steps, weight decay in the gradient is constant."""
    cycles: Whole = None
    """Cosine: how often the rate falls to 0."""
    milestones: Annotated[str | None, tyro.conf.arg(metavar="X,X", help_behavior_hint=HINT)] = None
    """Steps: shares of the epochs after which the rate is multiplied by --decay-rate: 0.6,0.85."""
    decay_rate: Number = None
    """Exponential: factor of learning rate and weight decay per --decay-epochs.  Steps: factor at each milestone."""
    decay_epochs: Number = None
    """Exponential: epochs per --decay-rate."""
    staircase: Annotated[bool | None, _choice("True", "False")] = None
    """Exponential: whether the rates fall in steps."""
    patience: Whole = None
    """Plateau: epochs without a better training loss before the rates are reduced."""
    plateau_factor: Number = None
    """Plateau: factor of a reduction."""
    cooldown: Whole = None
    """Plateau: epochs after a reduction in which none are counted."""
    min_delta: Number = None
    """Plateau: how much lower a loss must be to be better."""
    reductions: Whole = None
    """Plateau: training stops after so many reductions; 0: it does not."""
    momentum: Number = None
    """Momentum."""
    nesterov: Annotated[bool | None, _choice("True", "False")] = None
    """Whether momentum is Nesterov's."""
    threshold: Text = None
    """Rule of the thresholds: absolute:0.01, fraction_of_max:0.4 or quantile:0.25 (density at the start)."""
    weight_distribution: Annotated[
        Literal["signed_constant", "uniform", "normal"] | None, _choice("signed_constant", "uniform", "normal")
    ] = None
    """Distribution of the frozen (or, for the baseline, first) weights."""
    factor: Number = None
    """Factor on the He scale, for --init=elus (sqrt(3) for the fcn, sqrt(1.5) for the others) and he (1)."""
    p0: Number = None
    """Hidden share that --init=paper_formula assumes."""
    score_scale: Annotated[Literal["elus", "he", "xavier", "elu"] | None, _choice("elus", "he", "xavier", "elu")] = None
    """Scale of the scores at the start."""
    score_distribution: Annotated[
        Literal["signed_constant", "uniform", "normal"] | None, _choice("signed_constant", "uniform", "normal")
    ] = None
    """Distribution of the scores at the start."""
    loss: Annotated[
        Literal["log_softmax", "clipped", "squared_hinge"] | None, _choice("log_softmax", "clipped", "squared_hinge")
    ] = None
    """Plain cross-entropy, the authors' form clipped at 1e-7, or BinaryConnect's squared hinge loss."""
    order: Annotated[
        Literal["reshuffle", "fixed", "fixed_by_seed"] | None, _choice("reshuffle", "fixed", "fixed_by_seed")
    ] = None
    """A new order of the data for each seed and epoch, one fixed order for all, or one for all epochs of a seed."""
    precision: Annotated[
        Literal["float32", "bfloat16", "tf32", "tf32x3"] | None, _choice("float32", "bfloat16", "tf32", "tf32x3")
    ] = None
    """Operands of products; sums, scores and updates are float32 always.  Under bfloat16, XLA's own convolutions (a
    GPU's default) also round their outputs and gradients.  tf32 and tf32x3 (nearly float32) are for the dense products
    of an NVIDIA GPU; convolutions stay float32."""
    out: Path = Path("runs")
    """Folder of the runs."""
    group: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: by backend)")] = None
    """Seeds trained and saved together: all, or on a CPU five per core.  The numbers don't depend on it."""
    seed_loop: Annotated[Literal["map", "vmap"] | None, _choice("map", "vmap", hint="(default: by backend)")] = None
    """How a device runs its seeds: one after another (on a CPU, and on a GPU the Conv nets), or vectorised."""
    convolutions: Literal["auto", "xla", "im2col", "winograd"] = "auto"
    """Form of 3 x 3 convolutions: XLA's own (auto on a GPU), or for a CPU patches times kernel (im2col) or Winograd's
    (auto there, the faster one by layer)."""
    live_units: Literal["on", "off"] = "on"
    """Leave hidden units that are dead for good out of training, where that saves time (fcn and Conv nets).  Their
    masks are 0 either way, and results the same but for rounding."""
    checkpoint_every: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: by time alone)")
    ] = None
    """Save seeds in training after every so many epochs; the same command resumes from there after a crash."""
    checkpoint_minutes: Annotated[float, tyro.conf.arg(metavar="X")] = 5.0
    """Save them after an epoch, too, when so many minutes have passed since the last time; 0: never."""
    fresh: bool = False
    """Start over: remove the results and checkpoints that the run's folder holds."""
    on_bad_seed: Literal["exclude", "stop"] = "exclude"
    """What to do with a seed that turns non-finite, or has a layer without weights: exclude it, or end the run."""
    log: Literal["none", "tensorboard"] = "none"
    """Write TensorBoard's event files into the run's folder, beside the journal of all epochs."""
    deterministic: bool = False
    """Have a GPU compute the same bits in every run on one machine, for some speed; a CPU does so anyway."""
    distributed: bool = False
    """Share the seeds with the other processes of this job; under Slurm, Open MPI or Kubernetes nothing more is needed.
    --out must be a folder that all of them see."""
    coordinator: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT", help_behavior_hint="")] = None
    """Under --distributed: where process 0 runs, and a free port there."""
    processes: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None
    """Under --distributed: how many processes there are."""
    process: Annotated[int | None, tyro.conf.arg(metavar="I", help_behavior_hint="")] = None
    """Under --distributed: which one this is, from 0."""
    dry_run: bool = False
    """Print the resolved configuration, counts, memory and time, and stop."""


ELSEWHERE = {
    "model",
    "method",
    "learner",
    "preset",
    "dataset",
    "classes",
    "data_dir",
    "seeds",
    "out",
    "group",
    "seed_loop",
}
ELSEWHERE |= {
    "seed_loop",
    "convolutions",
    "live_units",
    "checkpoint_every",
    "checkpoint_minutes",
    "fresh",
    "on_bad_seed",
    "log",
    "deterministic",
}
ELSEWHERE |= {"distributed", "coordinator", "processes", "process", "dry_run"}
OVERRIDES = {field.name for field in fields(Options)} - ELSEWHERE
"""Options that a preset has values of."""


def with_method(options: type[Options]) -> type[Options]:
    """Return a type of options with those of the method that the command line names, as `--METHOD.NAME`."""
    from ssm.recipes.literature import learned_by

    words = [argument.partition("=") for argument in sys.argv[1:]]
    following = [word for word, *_ in words[1:]] + [""]
    given = {word: value or after for (word, _, value), after in zip(words, following, strict=True)}
    try:
        density = float(given.get("--density", 0))
    except ValueError:  # the options themselves say that it is not a number
        density = 0.0
    name = learned_by(given.get("--method", "signed"), density)
    if not name:
        return options
    from ssm.recipes.method_options import options_of, timed_options

    timed = timed_options(name, 1, 1)
    own = make_dataclass(
        "Own",
        [
            (option, Annotated[_optional(one.type), _own_argument(one, timed=option in timed)], None)
            for option, one in options_of(name).items()
        ],
        frozen=True,
        kw_only=True,
    )
    prefixed = Annotated[own, tyro.conf.arg(name=name)]
    made = make_dataclass(
        options.__name__, [("own", prefixed, field(default_factory=own))], bases=(options,), frozen=True, kw_only=True
    )
    made.__doc__ = options.__doc__
    return made


def _own_argument(option: Any, *, timed: bool) -> Any:
    """Return how an option of a method is shown: what it takes, and its default."""
    words = {int: "N", float: "X", str: "NAMES", bool: "{True,False}"}
    default = "by the length of the training" if timed else f"{option.default!r}, unless the preset has another"
    return tyro.conf.arg(
        help=option.help,
        metavar=words.get(option.type) or "{" + ",".join(get_args(option.type)) + "}",
        help_behavior_hint=f"(default: {default})",
    )


def _optional(kind: Any) -> Any:
    return kind | None


def own_options(options: Options) -> str:
    """Return the method's own options that were given, as a configuration has them."""
    from ssm.recipes.method_options import written_options

    own = vars(getattr(options, "own", None) or SimpleNamespace())
    for name, value in own.items():
        if isinstance(value, str) and ("," in value or "=" in value):
            raise UserError(
                f"--{options.method}.{name}={value}: neither commas nor '='; several layers are Conv_0+Dense_1."
            )
    return written_options({name: value for name, value in own.items() if value is not None})


def prepare(options: Options) -> None:
    """Check what can be checked at once, and start JAX as the options say; raises UserError."""
    # JAX takes seconds to import: --help and bad options need not wait for it.
    from ssm.runs import processes
    from ssm.runs.saving import Saving
    from ssm.training import devices

    if options.group is not None and options.group < 1:
        raise UserError(f"--group must be at least 1; got {options.group}.")
    Saving(every=options.checkpoint_every, minutes=options.checkpoint_minutes)
    if options.deterministic:
        devices.deterministic()
    named = {name: getattr(options, name) for name in ("coordinator", "processes", "process")}
    if options.distributed:
        processes.join(**named)
    elif given := next((name for name, value in named.items() if value is not None), None):
        raise UserError(f"--{given} goes with --distributed.")
    devices.use_host_devices()
    keep_compiled()


def keep_compiled() -> None:
    """Keep compiled programs for the next start, and say where, the first time."""
    from ssm.training import cache

    if folder := cache.keep_compiled():
        print(f"compiled programs are kept in {folder} (JAX_ENABLE_COMPILATION_CACHE=0: they are not)", flush=True)


def job_of(options: Options, config: Any, dataset: Any) -> Any:
    """Return the job of a configuration on its data set, as the options have it computed."""
    from ssm.runs.job import recipe_job

    return recipe_job(config, dataset, options.convolutions, live=options.live_units == "on")


def configured(options: Options, dataset: Any = None, *, method_options: str = "") -> tuple[Any, Any]:
    """Return the configuration that the options resolve to, and its data set, loaded unless it is handed in.

    `method_options` are the method's own, as a configuration has them, beside those of the command line.

    Raises UserError for what can't work: at once where that is so on any data, not after a download.
    """
    from ssm import data
    from ssm.recipes.build import check_options
    from ssm.recipes.config import Config, check_classes, resolve
    from ssm.recipes.presets import NET_DATA

    own = NET_DATA.get(options.model, ("mnist",))[0]
    overrides = {name: value for name, value in vars(options).items() if name in OVERRIDES}
    overrides["method_options"] = ",".join(filter(None, (method_options, own_options(options))))
    method = options.method
    if options.learner is not None:
        if method != "signed":
            raise UserError(f"--learner and --method={method} exclude each other.")
        method, overrides["learner"] = "own", options.learner

    def settings(name: str, samples: int) -> Config:
        named = {"model": options.model, "method": method, "preset": options.preset}
        config = resolve(**named, dataset=name, samples=samples, overrides=overrides)
        check_options(config)
        return config

    wanted = own if options.dataset == "auto" else options.dataset
    settings(wanted, samples=2**31)
    check_classes(options.classes, dataset=wanted)
    dataset = dataset or data.load(options.dataset, data_dir=options.data_dir, preferred=own)
    config = settings(dataset.name, len(dataset.train_labels))
    check_classes(options.classes, dataset=dataset.name, found=dataset.classes)
    return config, dataset


def run_options(options: Options) -> Any:
    """Return the execution options of a run."""
    from ssm.runs.processes import hosts
    from ssm.runs.run import RunOptions, no_watchers
    from ssm.runs.saving import Saving
    from ssm.runs.tensorboard import board

    return RunOptions(
        group=options.group,
        loop=options.seed_loop,
        saving=Saving(every=options.checkpoint_every, minutes=options.checkpoint_minutes),
        fresh=options.fresh,
        on_bad_seed=options.on_bad_seed,
        watchers=board if options.log == "tensorboard" else no_watchers,
        log=lambda line: print(line, flush=True),
        hosts=hosts(),
    )
