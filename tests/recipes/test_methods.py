import dataclasses

import jax
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.recipes import build
from ssm.recipes.config import resolve
from ssm.recipes.literature import LITERATURE
from ssm.recipes.method_options import parsed_options
from ssm.recipes.presets import NET_DATA
from ssm.recipes.published import PUBLISHED
from ssm.training.epoch import initial_variables

SAMPLES = {"mnist": 60_000, "cifar10": 50_000}
PAIRS = sorted({(model, method) for one in PUBLISHED for model in one.models for method in one.methods})


def make(model, method, preset="protocol", **overrides):
    dataset = NET_DATA[model][0]
    return resolve(
        model=model, method=method, preset=preset, dataset=dataset, samples=SAMPLES[dataset], overrides=overrides
    )


@pytest.mark.parametrize("method", LITERATURE)
@pytest.mark.parametrize("model", ["fcn", "conv2"])
def test_the_protocol_is_the_default_of_every_method(model, method):
    config = make(model, method)
    assert dataclasses.replace(make(model, method, "default"), preset="protocol") == config
    assert (config.epochs, config.batch_size, config.order) == (100, 128, "reshuffle")
    assert config.density == (0.1 if LITERATURE[method].dial else 0)
    assert config.validation == 0 and config.augment == "none"
    normalised = method in ("bnn", "bbg")
    assert (config.batch_norm == "statistics") == normalised


def test_a_density_of_the_signed_supermask_is_a_steered_threshold():
    assert make("fcn", "signed", density=0.02) == make("fcn", "steered", density=0.02)
    assert make("fcn", "signed", "default", density=0.02).method == "steered"
    kept = [make("fcn", "signed", "paper", density=0.02), make("resnet20", "signed", "default", density=0.2)]
    for config in kept:
        plain = make(config.model, "signed", config.preset)
        named = {"density": config.density, "method_options": config.method_options}
        assert config == dataclasses.replace(plain, **named) and "counted=" in config.method_options


QUICK = (
    "steered",
    "edge_popup",
    "granet",
    "ttq",
    "bnn",
)  # one of each kind; the others are trained in tests of their own


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in LITERATURE]
)
def test_every_learner_is_built_and_starts(method):
    config = make("fcn", method, width=0.02)
    net = build.build(config)

    @jax.jit
    def begun(images):
        variables = initial_variables(net, jax.random.key(0), images)
        return net.masks(variables), net.apply(variables, images)

    masks, outputs = begun(np.ones((2, 28, 28, 1), np.float32))
    assert all(set(np.unique(mask)) <= {-1.0, 0.0, 1.0} for mask in masks.values())
    assert np.isfinite(outputs).all()


def test_the_rates_are_those_of_the_protocol():
    rates = {method: make("fcn", method).learning_rate for method in LITERATURE} | {
        "baseline": make("fcn", "baseline").learning_rate,
        "signed": make("fcn", "signed").learning_rate,
    }
    assert (rates["steered"], make("conv4", "steered").learning_rate) == (0.15, 0.05)
    slow = ("baseline", "signed", "force", "set", "rigl", "granet", "twn", "sca")
    assert {rates[name] for name in slow} == {0.05}
    assert {rates[name] for name in ("edge_popup", "iterand", "signed_top_k", "mpt", "mpt_global", "gem_miner")} == {
        0.1
    }
    assert (rates["zhou"], rates["ttq"], rates["lr_net"], rates["binary_connect"]) == (100, 0.01, 0.01, 1e-3)
    assert make("conv2", "iterand").learning_rate == 0.3
    assert make("conv2", "binary_connect").learning_rate == 3e-3
    assert make("conv2", "signed").learning_rate == 0.02


def test_frozen_constants_are_scaled_for_the_share_that_is_kept():
    for method, density in (("edge_popup", 0.1), ("iterand", 0.036), ("signed_top_k", 0.01)):
        config = make("fcn", method, density=density)
        weights = np.abs(build.kernel_init(config)(jax.random.key(0), (784, 300)))
        np.testing.assert_allclose(weights, np.sqrt(1.5 / (density * 784)), rtol=1e-5)


def test_a_cosine_falls_to_0_as_often_as_asked():
    config = make("fcn", "ttq")
    rates, decays = build.rates(config, np.asarray([0, 11_725, 23_449, 23_450, 46_899]))
    np.testing.assert_allclose(rates, [0.01, 0.005, 0, 0.01, 0], atol=1e-8)
    np.testing.assert_allclose(decays, np.float32(2e-4))  # it is multiplied by the rate in the step


def test_steps_are_at_shares_of_all_epochs():
    config = make("fcn", "lr_net")
    rates, _ = build.rates(config, np.asarray([0, 28_139, 28_140, 39_864, 39_865]))
    np.testing.assert_allclose(rates, [0.01, 0.01, 0.001, 0.001, 0.0001], rtol=1e-5)


LARGE = ("resnet18", "vgg19", "wrn22_2")


@pytest.mark.parametrize(
    ("model", "method"), [pytest.param(*pair, marks=pytest.mark.slow if pair[0] in LARGE else []) for pair in PAIRS]
)
def test_every_published_recipe_is_whole(model, method):
    config = make(model, method, "published")
    net = build.build(config)
    shape = (1, 28, 28, 1) if model == "fcn" else (1, 32, 32, 3)
    jax.eval_shape(lambda: net.masks(initial_variables(net, jax.random.key(0), np.zeros(shape, np.float32))))


def test_published_recipes_are_those_of_the_programs():
    rigl = make("wrn22_2", "rigl", "published")
    assert (rigl.dropout, rigl.nesterov, rigl.density, rigl.epochs) == (0.3, True, 0.5, 250)
    # 30, 60 and 90 thousand steps of 97,656.
    steps = np.asarray([29_999, 30_030, 60_100, 90_100])
    np.testing.assert_allclose(build.rates(rigl, steps)[0], [0.1, 0.02, 0.004, 0.0008], rtol=1e-5)
    granet = make("vgg19", "granet", "published")
    assert (granet.epochs, granet.density, granet.train_images, granet.validation) == (160, 0.05, 45_000, 0)
    np.testing.assert_allclose(
        build.rates(granet, np.asarray([80 * 352 - 1, 80 * 352, 120 * 352]))[0], [0.1, 0.01, 0.001], rtol=1e-5
    )
    assert make("conv6", "iterand", "published").width == 2
    assert make("conv6", "iterand", "published").learning_rate == 0.3
    assert make("vgg_small_1024x2", "bnn", "published").loss == "squared_hinge"
    options = parsed_options(rigl.method_options)
    assert (options["schedule"], options["distribution"], options["exempt"]) == ("constant", "uniform", "Conv_0")
    connect = parsed_options(make("vgg_small_1024x2", "binary_connect", "published").method_options)
    assert (connect["stochastic"], connect["test"]) == ("True", "real")
    assert parsed_options(make("vgg_small_1024", "set", "published").method_options)["dense_output"] == "True"
    assert parsed_options(make("resnet20", "ttq", "published").method_options)["exempt"] == "Conv_0"
    assert parsed_options(make("vgg_small_1024", "lr_net", "published").method_options)["exempt"] == "Dense_1"
    zhou = [make(model, "zhou", "published") for model in ("fcn", "conv6")]
    assert [(one.epochs, one.train_images) for one in zhou] == [(2000, 55_000), (2000, 45_000)]


@pytest.mark.parametrize(
    ("model", "method", "preset", "message"),
    [
        ("fcn", "rigl", "paper", "--preset=paper has no recipe for --model=fcn --method=rigl; take --preset=protocol"),
        ("resnet20", "rigl", "protocol", "has no recipe .*; --preset=published has one for --model=wrn22_2"),
        ("vgg19", "signed", "default", "has no recipe for --model=vgg19 --method=signed"),
        ("fcn", "signed", "published", "has no recipe for --model=fcn --method=signed; take --preset=protocol"),
    ],
)
def test_what_has_no_recipe_says_what_has(model, method, preset, message):
    with pytest.raises(UserError, match=message):
        make(model, method, preset)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("zhou", {"density": 0.1}, "--density has no effect on --method=zhou"),
        ("binary", {"density": 0.1}, "--density has no effect on --method=binary"),
        ("rigl", {"threshold": "0.02"}, "--threshold has no effect on --method=rigl"),
        ("rigl", {"density": 1.5}, r"--density must lie in \(0, 1\]"),
        ("edge_popup", {"density": -0.5}, r"--density must lie in \(0, 1\]"),  # and not what follows from it
        ("edge_popup", {"density": 0.0}, r"--density must lie in \(0, 1\]"),
        ("rigl", {"validation": 5000, "train_images": 55_001}, "--train-images=55001: there are 55000 training images"),
        ("rigl", {"validation": 60_000}, "--validation=60000: the data set has 60000 training images"),
        ("rigl", {"milestones": "0.5"}, "--milestones has no effect on --schedule=cosine"),
        ("rigl", {"schedule": "steps", "milestones": "0.8,0.5"}, "--milestones=0.8,0.5 must be rising shares"),
        ("lr_net", {"momentum": 0.5}, "--momentum has no effect on --optimizer=adam"),
        ("rigl", {"dropout": 0.5}, "--dropout has no effect on --model=fcn"),
    ],
)
def test_options_without_effect_are_refused(method, options, message):
    with pytest.raises(UserError, match=message):
        make("fcn", method, **options)


def test_training_images_are_held_out():
    config = make("fcn", "rigl", validation=5000)
    assert config.decay_steps == 100 * 430  # 55,000 images
    assert "steps=43000" in config.method_options
    config = make("fcn", "rigl", validation=5000, train_images=6400)
    assert config.decay_steps == 100 * 50
