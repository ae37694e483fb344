"""The recipes, typed by hand from the paper's tables and the ledger, not from the code."""

import dataclasses
import itertools
import json
import math
from pathlib import Path

import jax
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.models import LITERATURE, MODELS, RESNETS
from ssm.recipes.build import kernel_init, score_init
from ssm.recipes.change import CONV_NETS
from ssm.recipes.config import resolve
from ssm.recipes.presets import BLOCKS, DATA_CLASSES, ELUS_FACTOR, METHODS, MODEL_DATA, NET_DATA, OWN, PRESETS
from ssm.recipes.published import TABLE_NETS

RESULTS = Path(__file__).resolve().parents[2] / "experiments" / "results"
SAMPLES = {"mnist": 60_000, "fashion_mnist": 60_000, "mnist5k": 4_000, "cifar10": 50_000, "cifar100": 50_000}


def make(model, method="signed", preset="default", dataset=None, **overrides):
    dataset = dataset or MODEL_DATA[model][0]
    samples = SAMPLES[dataset.removeprefix("tfds:")]
    return resolve(model=model, method=method, preset=preset, dataset=dataset, samples=samples, overrides=overrides)


def rates(config):
    """The numbers of the paper's tables of hyperparameters, with the decay in epochs of 391 or 469 steps."""
    steps = 469 if config.dataset == "mnist" else 391
    decay = None if config.schedule != "exponential" else (config.decay_rate, config.decay_steps / steps)
    return config.learning_rate, config.weight_decay, config.epochs, decay


def test_every_model_has_data_and_a_factor():
    assert set(MODEL_DATA) == set(MODELS) == set(ELUS_FACTOR) - {OWN, *TABLE_NETS}
    assert set(NET_DATA) - set(MODEL_DATA) == set(TABLE_NETS) == set(LITERATURE)
    assert set(BLOCKS) == set(RESNETS)
    assert {name for sets in MODEL_DATA.values() for name in sets} == set(DATA_CLASSES)
    assert {model: sets[0] for model, sets in MODEL_DATA.items()} == {
        "fcn": "mnist",
        "conv2": "cifar10",
        "conv4": "cifar10",
        "conv6": "cifar10",
        "conv8": "cifar10",
        "resnet20": "cifar10",
        "resnet56": "cifar100",
        "resnet110": "cifar100",
    }


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("method", ["signed", "binary"])
@pytest.mark.parametrize(
    ("model", "expected", "threshold"),
    [
        ("fcn", (0.05, 5e-4, 100, (0.96, 10)), "absolute:0.01"),
        ("conv2", (0.02, 5e-4, 100, (0.96, 5)), "absolute:0.01"),
        ("conv4", (0.05, 5e-4, 100, (0.96, 10)), "absolute:0.01"),
        ("conv6", (0.05, 5e-4, 100, (0.96, 10)), "absolute:0.01"),
        ("conv8", (0.05, 5e-4, 100, (0.96, 10)), "absolute:0.01"),
        ("resnet20", (0.2, 1e-4, 110, None), "quantile:0.25"),
        ("resnet56", (0.15, 1e-4, 120, None), "quantile:0.15"),
        ("resnet110", (0.15, 1e-5, 120, None), "quantile:0.15"),
    ],
)
def test_masked_nets_of_the_paper(preset, method, model, expected, threshold):
    config = make(model, method, preset)
    assert rates(config) == expected
    assert (config.threshold, config.init, config.weight_distribution) == (threshold, "elus", "signed_constant")
    assert config.factor == pytest.approx(math.sqrt(3 if model == "fcn" else 1.5))
    assert (config.score_scale, config.loss, config.staircase, config.batch_size) == (
        "xavier",
        "log_softmax",
        True,
        128,
    )
    assert config.projections == (2 if model == "resnet110" else 1)
    assert config.order == ("fixed" if (model, preset) == ("fcn", "paper") else "reshuffle")


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("fcn", (0.008, 5e-4, 50, (0.96, 10))),
        ("conv2", (0.008, 7e-4, 50, (0.96, 5))),
        ("conv4", (0.008, 7e-4, 50, (0.96, 10))),
        ("conv6", (0.01, 7e-4, 50, (0.96, 10))),
        ("conv8", (0.002, 3e-4, 50, (0.96, 10))),
        ("resnet20", (0.2, 1e-4, 80, None)),
        ("resnet56", (0.15, 1e-4, 90, None)),
        ("resnet110", (0.15, 1e-4, 90, None)),
    ],
)
def test_baselines_of_the_paper(preset, model, expected):
    config = make(model, "baseline", preset)
    assert rates(config) == expected
    assert (config.init, config.weight_distribution, config.factor, config.projections) == ("elu", "uniform", 1.0, 1)
    assert config.order == ("fixed" if (model, preset) == ("fcn", "paper") else "reshuffle")


@pytest.mark.parametrize(
    ("model", "method", "expected", "threshold"),
    [
        ("fcn", "signed", (0.05, 5e-4, 100, (0.9, 10)), "fraction_of_max:0.4"),
        ("fcn", "binary", (0.05, 5e-4, 100, (0.9, 10)), "absolute:0.01"),
        ("fcn", "baseline", (0.01, 5e-4, 50, (0.9, 10)), None),
        ("conv2", "signed", (0.04, 5e-4, 100, (0.9, 10)), "fraction_of_max:0.4"),
        ("conv2", "binary", (0.04, 5e-4, 100, (0.9, 10)), "absolute:0.01"),
        ("conv2", "baseline", (0.008, 7e-4, 50, (0.9, 5)), None),
        ("conv4", "signed", (0.05, 5e-4, 100, (0.9, 10)), "fraction_of_max:0.4"),
        ("conv4", "binary", (0.05, 5e-4, 100, (0.9, 10)), "absolute:0.01"),
        ("conv4", "baseline", (0.008, 7e-4, 50, (0.9, 5)), None),
        ("conv6", "signed", (0.05, 5e-4, 100, (0.9, 10)), "fraction_of_max:0.4"),
        ("conv6", "binary", (0.05, 5e-4, 100, (0.9, 10)), "absolute:0.01"),
        ("conv6", "baseline", (0.01, 7e-4, 50, (0.9, 10)), None),
        ("conv8", "signed", (0.05, 5e-4, 100, (0.9, 10)), "fraction_of_max:0.4"),
        ("conv8", "binary", (0.05, 5e-4, 100, (0.9, 10)), "absolute:0.01"),
        ("conv8", "baseline", (0.01, 7e-4, 50, (0.9, 10)), None),
        ("resnet20", "signed", (0.3, 3e-4, 110, None), "fraction_of_max:0.75"),
        ("resnet20", "binary", (0.3, 3e-4, 110, None), "absolute:0.01"),
        ("resnet20", "baseline", (0.2, 1e-4, 80, None), None),
        ("resnet56", "signed", (0.15, 1e-4, 120, None), "fraction_of_max:0.8"),
        ("resnet56", "binary", (0.15, 1e-4, 120, None), "absolute:0.01"),
        ("resnet110", "signed", (0.15, 1e-5, 120, None), "fraction_of_max:0.85"),
        ("resnet110", "binary", (0.15, 1e-5, 120, None), "absolute:0.01"),
    ],
)
def test_what_the_program_does(model, method, expected, threshold):
    config = make(model, method, "code")
    assert rates(config) == expected
    assert threshold is None or config.threshold == threshold
    assert (config.loss, config.order) == ("clipped", "reshuffle")
    assert config.schedule == "authors_plateau" or not config.staircase


@pytest.mark.parametrize(
    ("model", "preset", "expected"),
    [
        # schedule, patience, factor, cooldown, min_delta, reductions
        ("resnet20", "default", ("plateau", 15, 0.2, 0, 1e-4, 0)),
        ("resnet56", "paper", ("plateau", 15, 0.2, 0, 1e-4, 0)),
        ("resnet110", "paper", ("plateau", 15, 0.2, 0, 1e-4, 0)),
        ("resnet20", "code", ("authors_plateau", 15, 0.2, 10, 1e-4, 5)),
        ("resnet56", "code", ("authors_plateau", 15, 0.1, 10, 1e-4, 7)),
        ("resnet110", "code", ("authors_plateau", 15, 0.2, 10, 1e-4, 5)),
    ],
)
def test_plateau_rules(model, preset, expected):
    names = ("schedule", "patience", "plateau_factor", "cooldown", "min_delta", "reductions")
    config = make(model, "signed", preset)
    assert tuple(getattr(config, name) for name in names) == expected


def test_batch_normalisation():
    def norm(*args, **options):
        config = make(*args, **options)
        return config.batch_norm, config.stem_affine

    for model in ("fcn", "conv2", "conv8"):
        assert norm(model) == norm(model, "baseline") == norm(model, preset="code") == ("none", False)
    for model in RESNETS:
        assert norm(model) == norm(model, "binary", "paper") == ("frozen", False)
        assert norm(model, "baseline") == ("affine", False)
        assert norm(model, batch_norm="affine") == ("affine", False)
    assert norm("resnet20", preset="code") == norm("resnet20", "binary", "code") == ("frozen", True)
    assert norm("resnet20", "baseline", "code") == ("affine", False)
    assert norm("resnet56", preset="code") == ("frozen", False)


@pytest.mark.parametrize(
    ("model", "dataset", "preset", "expected"),
    [
        ("resnet20", "cifar10", "default", ("none", 1)),
        ("resnet20", "cifar10", "code", ("none", 1)),
        ("resnet20", "cifar100", "paper", ("crop_flip", 1)),
        ("resnet56", "cifar10", "paper", ("none", 1)),
        ("resnet56", "cifar100", "default", ("crop_flip", 1)),
        ("resnet56", "cifar100", "code", ("crop_flip_standardize", 7)),
        ("resnet110", "tfds:cifar100", "paper", ("crop_flip", 1)),
        ("conv4", "cifar10", "code", ("none", 1)),
        ("conv4", "cifar100", "code", ("none", 1)),
    ],
)
def test_data(model, dataset, preset, expected):
    config = make(model, preset=preset, dataset=dataset)
    assert (config.augment, config.passes) == expected


def test_an_epoch_of_more_passes_has_more_steps():
    assert make("conv4", passes=7).decay_steps == 7 * 10 * 391


@pytest.mark.parametrize(("preset", "expected"), [("sinn1", (0.01, 5e-4)), ("sinn2", (0.008, 3e-4))])
@pytest.mark.parametrize("model", ["fcn", "conv2", "conv4", "conv6", "conv8"])
def test_sinn_is_the_papers_recipe_with_two_other_values(preset, expected, model):
    config, paper = make(model, preset=preset), make(model, preset="paper")
    assert (config.learning_rate, config.weight_decay) == expected
    other = {"preset": "paper", "learning_rate": paper.learning_rate, "weight_decay": paper.weight_decay}
    assert dataclasses.replace(config, **other) == paper


@pytest.mark.parametrize(
    ("model", "method", "preset"), list(itertools.product(sorted(MODEL_DATA), METHODS, PRESETS)), ids="-".join
)
def test_every_combination_resolves_or_says_what_does(model, method, preset):
    sinn = preset in ("sinn1", "sinn2") and (method != "signed" or model in RESNETS)
    best = preset == "best" and (method == "binary" or model in RESNETS)
    built = preset == "code" and method == "baseline" and model in ("resnet56", "resnet110")
    for dataset in MODEL_DATA[model]:
        if not (sinn or best or built):
            assert make(model, method, preset, dataset).preset == preset
            continue
        with pytest.raises(UserError, match=f"--preset={preset} has no recipe for .*{model}") as error:
            make(model, method, preset, dataset)
        says = (
            "fcn, conv2, conv4, conv6, conv8; "
            if sinn
            else "signed or baseline and --model=fcn, conv2, conv4, conv6, conv8; "
            if best
            else "cannot build it; "
        )
        assert says in str(error.value) and "--preset=default" in str(error.value)


def test_best_has_a_larger_constant_and_more_decay_and_its_dense_net_the_same_images():
    config, dense = make("fcn", preset="best"), make("fcn", "baseline", "best")
    assert (config.learning_rate, config.weight_decay, config.density) == (0.1, 2.3e-3, 0)
    assert (config.factor, config.threshold) == (pytest.approx(math.sqrt(12)), "absolute:0.01")
    for name in ("epochs", "augment", "schedule", "batch_size"):
        assert getattr(config, name) == getattr(dense, name)
    assert (config.augment, config.schedule, dense.decay) == ("shift", "cosine", "coupled")
    assert "counted=" in make("fcn", preset="best", density=0.014).method_options


@pytest.mark.parametrize("model", CONV_NETS)
def test_best_of_a_conv_net_is_its_default_with_a_cosine_crops_and_flips_and_conv2s_a_larger_constant(model):
    config, dense, default = make(model, preset="best"), make(model, "baseline", "best"), make(model)
    for one in (config, dense):
        assert (one.epochs, one.augment, one.schedule, one.learning_rate) == (20, "crop_flip", "cosine", 0.05)
        assert one.weight_decay == 5e-4
    assert (config.decay, dense.decay) == ("decoupled", "coupled")
    assert config.factor == (1.5 if model == "conv2" else default.factor)


def test_the_factor_follows_the_scale():
    assert make("resnet56", preset="code").factor == pytest.approx(math.sqrt(1.3))
    assert make("resnet56", preset="code", init="he").factor == 1.0
    assert make("conv8", init="he").factor == 1.0
    assert make("conv8", factor=1.1).factor == 1.1
    assert make("conv8", "baseline", init="he").factor == 1.0


SHAPE = (3, 3, 64, 128)  # fan_in 576


def test_elus_scores_for_elus_weights():
    config = make("conv4", init="elus", score_scale="elus")
    key = jax.random.key(0)
    weights, scores = (np.asarray(init(config)(key, SHAPE)) for init in (kernel_init, score_init))
    np.testing.assert_allclose(np.abs(weights), math.sqrt(3 / 576), rtol=1e-6)
    # The same standard deviation, as uniform numbers.
    assert np.abs(scores).max() == pytest.approx(math.sqrt(9 / 576), rel=1e-3)


def test_uniform_he_weights():
    config = make("conv4", init="he", weight_distribution="uniform")
    weights = np.asarray(kernel_init(config)(jax.random.key(0), SHAPE))
    assert weights.std() == pytest.approx(math.sqrt(2 / 576), rel=0.01)
    assert np.abs(weights).max() == pytest.approx(math.sqrt(6 / 576), rel=1e-3)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("fcn-*/config.json")), ids=lambda path: path.parent.name)
def test_published_runs_are_still_what_their_preset_says(path):
    published = json.loads(path.read_text())
    method, preset, init = (published[name] for name in ("method", "preset", "init"))
    # Options of some of the commands in experiments/results/README.md, which no preset says.
    given = ["weight_distribution"] if method == "baseline" else ["weight_distribution", "score_scale"]
    given += ["order"] if published["order"] == "fixed_by_seed" else []
    now = make("fcn", method, preset, init=init, **{name: published[name] for name in given}).as_dict()
    assert published == {name: now[name] for name in published}
