"""Of gpu.py: the conv nets and ResNet20, timed in every way on a tenth of CIFAR-10, and trained on all of it."""

import dataclasses
import math
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from gpu_bench import MARGIN, MATMUL, Bench, first_images, reason_to_skip, seeds_that_fit
from gpu_rows import result
from turns import random_images

from ssm.data import Dataset
from ssm.models import count_weights
from ssm.ops.convolution import Form
from ssm.recipes.build import build, steps_per_epoch
from ssm.recipes.config import Config, resolve
from ssm.runs.folder import read_summary, run_name
from ssm.runs.run import Conduct, run_seeds
from ssm.training.epoch import SeedLoop
from ssm.training.loop import Progress, make_trainer, train

NETS = ("conv2", "conv4", "resnet20", "conv6", "conv8")
TRAINED = (("conv2", 1 / 3), ("conv4", 1.0))  # each with its share of the time that is left then
MOST_SEEDS = 50  # of a trained net
TIMED_SEEDS = {"map": 4, "vmap": 10}  # one after another takes the same time each, however many
WAY_SECONDS = 45.0  # to be free for the first way of all; then the ways so far say it
LONG = 3.0  # seconds of timed epochs after which no further one is needed
WAYS_RESERVE, DENSE_RESERVE = 0.4, 0.25  # of the clock: kept for what comes after
FULL = (50_000, 10_000)  # images of CIFAR-10
TENTH = (39 * 128, 1000)  # images: 39 of 391 steps, and 4 of 40 batches of the evaluation
TINY = (64, 32)  # as many as the tests' files hold: training is then compiled already

# Bytes for each byte of the largest layer's input: what the form makes of it, and of its gradient.
WORKSPACE: dict[Form, int] = {"auto": 27, "xla": 4, "winograd": 16, "im2col": 27}
KEPT = 3  # copies of a layer's input and output that live until the gradient: themselves, cotangents, and a spare
STATE = 31  # bytes per weight, as in ssm.runs.estimate
USABLE = 0.8  # of the device's memory


@dataclass(frozen=True)
class Way:
    """A precision (a name in MATMUL), how seeds are run, and the form of the convolutions."""

    precision: str
    loop: SeedLoop
    form: Form

    def __str__(self) -> str:
        return f"{self.precision}, {self.loop}, {self.form}"


# The most telling first.  A name alone is that precision in the way that is the fastest in float32.
WAYS: tuple[Way | str, ...] = (
    Way("float32", "map", "xla"),
    Way("float32", "vmap", "xla"),
    Way("float32", "vmap", "winograd"),
    "bfloat16",
    "TF32",
    Way("float32", "vmap", "im2col"),
    Way("bfloat16", "map", "xla"),
    Way("bfloat16", "vmap", "im2col"),
    Way("bfloat16", "vmap", "xla"),
    Way("float32", "map", "winograd"),
)


TINY_WAYS = (WAYS[2], "bfloat16")


class Enough(Exception):
    """Raised out of a training that has been timed well enough."""


def a_tenth(bench: Bench, dataset: Dataset | None) -> Dataset:
    """Return the images that all ways are timed on: the first ones, or made ones where CIFAR-10 is not at hand."""
    train_images, test_images = TINY if bench.tiny else TENTH
    if dataset is None:
        dataset = random_images(train_images, test_images)
    dataset = first_images(dataset, train_images, test_images)
    bench.put("slice", "data", dataset.source)
    bench.put("slice", "factor", factor(dataset, bench))
    bench.put(
        "slice",
        "how",
        "an epoch of the slice, evaluation included, times the factor: the steps of 50,000 images over the slice's; "
        "what comes once an epoch (shuffling, counting masks, the host) is so counted too often",
    )
    return dataset


def factor(dataset: Dataset, bench: Bench) -> float:
    """Return how many times longer an epoch of all images is."""
    batch = settings(bench, "conv2", len(dataset.train_labels)).batch_size
    return steps_per_epoch(FULL[0], batch) / steps_per_epoch(len(dataset.train_labels), batch)


def settings(bench: Bench, model: str, samples: int, *, method: str = "signed", precision: str = "float32") -> Config:
    """Return a net's resolved configuration, preset default."""
    overrides: dict[str, Any] = {"precision": "float32" if precision == "TF32" else precision}
    if bench.tiny:
        overrides |= {"epochs": 1, "batch_size": 32, "width": 0.0625}
    named = {"model": model, "method": method, "preset": "default", "dataset": "cifar10"}
    return resolve(**named, samples=samples, overrides=overrides)


@cache
def sizes(config: Config) -> tuple[int, int, int]:
    """Return the elements of a batch's inputs and outputs of all layers, of the largest input, and of all weights."""
    net = build(config)
    inputs, outputs = [], []

    def note(function, args, kwargs, context):
        y = function(*args, **kwargs)
        if isinstance(context.module, nn.Conv | nn.Dense):
            inputs.append(args[0].size)
            # What follows a convolution may pool, so its own output is told from its input.
            strides = np.broadcast_to(getattr(context.module, "strides", 1) or 1, 2)
            outputs.append(args[0].size // args[0].shape[-1] * context.module.features // math.prod(map(int, strides)))
        return y

    example = jax.ShapeDtypeStruct((config.batch_size, 32, 32, 3), jnp.float32)
    with nn.intercept_methods(note):
        variables = jax.eval_shape(net.module.init, jax.random.key(0), example)
    return sum(inputs + outputs), max(inputs), count_weights(variables["params"])


def seed_bytes(config: Config, form: Form) -> float:
    """Return roughly the bytes that training one seed takes, from the sizes of its layers' inputs and outputs."""
    kept, largest, weights = sizes(config)
    return 4.0 * (KEPT * kept + WORKSPACE[form] * largest) + STATE * weights


def most_seeds(bench: Bench, config: Config, way: Way, wanted: int) -> int:
    """Return how many seeds fit the memory of the device, at least one."""
    if way.loop == "map" or bench.memory is None:
        return wanted
    return max(1, min(wanted, int(USABLE * bench.memory / seed_bytes(config, way.form))))


def seconds_of_slice(config: Config, dataset: Dataset, way: Way, seeds: int) -> float:
    """Return the shortest time of an epoch of all seeds, the first, which compiles, not counted."""
    told: list[Progress] = []

    def report(progress: Progress) -> None:
        told.append(progress)
        if len(told) == config.epochs or sum(one.seconds for one in told[1:]) > LONG:
            raise Enough  # before the end, what comes after it would be compiled, too

    with suppress(Enough), jax.default_matmul_precision(MATMUL[way.precision]):
        trainer = make_trainer(config, dataset, devices=jax.devices()[:1], loop=way.loop, form=way.form)
        train(trainer, range(seeds), report)
    if len(told) < 2:
        raise RuntimeError("every seed turned non-finite in the first epoch")
    return min(one.seconds for one in told[1:])


def timed(bench: Bench, dataset: Dataset, model: str, way: Way, *, method: str = "signed") -> tuple[Any, str]:
    """Return the seconds of a net per epoch of all images and seed, in one way, and what else belongs to them."""
    config = settings(bench, model, len(dataset.train_labels), method=method, precision=way.precision)
    config = dataclasses.replace(config, epochs=2 if bench.tiny else 4)
    seeds = most_seeds(bench, config, way, 2 if bench.tiny else TIMED_SEEDS[way.loop])
    start = time.perf_counter()
    shortest = seconds_of_slice(config, dataset, way, seeds)
    took = time.perf_counter() - start
    pace = shortest * factor(dataset, bench) / seeds
    figure = {"seconds": pace, "slice_seconds": shortest, "seeds": seeds, "took": took}
    figure |= {"model": model, "method": method, "matmul_precision": MATMUL[way.precision], **vars(way)}
    return figure, f"{pace:.4f} s per epoch and seed, {seeds} seeds; took {took:.1f} s"


def measured(bench: Bench, model: str | None = None) -> list[dict[str, Any]]:
    """Return the figures of the ways timed so far, of one net or all."""
    found = (figure for figure in bench.figures.get("nets", {}).values() if isinstance(figure, dict))
    return [figure for figure in found if model in (None, figure["model"])]


def fastest(bench: Bench, model: str, *precisions: str) -> tuple[Way, dict[str, Any]] | None:
    """Return a net's fastest way in these precisions with its figure, None if none was timed."""
    found = [figure for figure in measured(bench, model) if figure["precision"] in precisions]
    if not found:
        return None
    best = min(found, key=lambda figure: figure["seconds"])
    return Way(best["precision"], best["loop"], best["form"]), best


def expected(bench: Bench, model: str) -> float:
    """Return how long timing one more way of a net may take: as its others, or the longest of all."""
    own = [figure["took"] for figure in measured(bench, model)]
    if own:
        return MARGIN * statistics.median(own)
    return MARGIN * max((figure["took"] for figure in measured(bench)), default=WAY_SECONDS)


def ways(bench: Bench, dataset: Dataset) -> None:
    """Time every net in every way, the most telling ways of all nets first."""
    models, wishes = (("conv2",), TINY_WAYS) if bench.tiny else (NETS, WAYS)
    for wish in wishes:
        for model in models:
            way = wish
            if isinstance(way, str):
                best = fastest(bench, model, "float32")
                if best is None or (way == "TF32" and jax.default_backend() == "cpu"):
                    continue
                way = Way(way, best[0].loop, best[0].form)
            if f"{model}, {way}" in bench.figures.get("nets", {}):
                continue
            do = partial(timed, bench, dataset, model, way)
            needs, reserve = expected(bench, model), WAYS_RESERVE * bench.seconds
            bench.attempt("nets", f"{model}, {way}", do, needs=needs, reserve=reserve)


def dense(bench: Bench, dataset: Dataset) -> None:
    """Time the masked and the dense step of each conv net, one right after the other, in its fastest float32 way."""
    for model in NETS:
        best = fastest(bench, model, "float32")
        if model == "resnet20" or best is None:  # the dense ResNet has another batch normalisation
            continue

        def compare(model=model, way=best[0]) -> tuple[Any, str]:
            masked = timed(bench, dataset, model, way)[0]
            plain = timed(bench, dataset, model, way, method="baseline")[0]
            ratio = masked["seconds"] / plain["seconds"]
            figure = {"seconds": plain["seconds"], "masked_seconds": masked["seconds"], "ratio": ratio, **vars(way)}
            steps = steps_per_epoch(len(dataset.train_labels), settings(bench, model, FULL[0]).batch_size)
            for name, one in (("dense_step_ms", plain), ("masked_step_ms", masked)):  # its part of the evaluation in it
                figure[name] = 1e3 * one["slice_seconds"] / one["seeds"] / steps
            text = f"masked {figure['masked_step_ms']:.3f} ms, dense {figure['dense_step_ms']:.3f} ms a step and seed"
            return figure, f"{text}, ratio {ratio:.3f}"

        # The masked net is compiled already.
        needs, reserve = 1.5 * expected(bench, model), DENSE_RESERVE * bench.seconds
        bench.attempt("dense", f"{model}, {best[0]}", compare, needs=needs, reserve=reserve)


def training(bench: Bench, dataset: Dataset | None) -> None:
    """Train nets on all images, as many seeds as fit, in the fastest way of those whose numbers are an ordinary run's.

    TF32 is not: it would be a float32 run by its configuration.
    """
    for model, share in TRAINED[: 1 if bench.tiny else None]:
        best = fastest(bench, model, "float32", "bfloat16")
        if dataset is None or best is None:
            why = "CIFAR-10 is not at hand" if dataset is None else "nothing timed tells how long it takes"
            bench.put("training", model, f"left out: {why}")
            continue
        way, figure = best
        config = settings(bench, model, len(dataset.train_labels), precision=way.precision)
        steps = [steps_per_epoch(samples, config.batch_size) for samples in (len(dataset.train_labels), FULL[0])]
        pace = figure["seconds"] * steps[0] / steps[1]  # the user's own files may be fewer
        once = figure["took"]  # compiling is as much work for all images as for a tenth
        most = most_seeds(bench, config, way, 2 if bench.tiny else MOST_SEEDS)
        left = bench.left()
        count = seeds_that_fit(left, share=share, pace=pace, epochs=config.epochs, once=once, most=most)
        if not count and not (bench.runs / run_name(config.as_dict()) / "summary.json").exists():
            bench.put("training", model, reason_to_skip(MARGIN * pace * config.epochs + once, left))
            continue
        do = partial(train_seeds, bench, dataset, config, way, most, count)
        bench.attempt("training", model, do)


def train_seeds(bench: Bench, dataset: Dataset, config: Config, way: Way, most: int, count: int) -> tuple[Any, str]:
    """Train up to `count` seeds that the run lacks, all at once, and return its figures."""
    finished: set[int] = set()
    folder = bench.runs / run_name(config.as_dict())
    if (folder / "summary.json").exists():
        before = read_summary(folder)
        finished = {*map(int, before["test_accuracy"]["values"]), *(entry["seed"] for entry in before["failed"])}
    seeds = [seed for seed in range(most) if seed not in finished][:count]
    start = time.perf_counter()
    how = {"group": max(1, len(seeds)), "loop": way.loop, "form": way.form}
    run = run_seeds(config, dataset, seeds, out=bench.runs, conduct=Conduct(tell=print), **how)
    figure, text = result(run, config, len(seeds), time.perf_counter() - start)
    return figure | vars(way), f"{way}: {text}"
