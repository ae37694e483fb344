import dataclasses
import re
from typing import get_args

import jax
import pytest

from ssm import learners
from ssm.errors import UserError
from ssm.recipes import build
from ssm.recipes.config import resolve
from ssm.recipes.literature import LITERATURE
from ssm.recipes.method_options import (
    options_of,
    parsed_options,
    timed_options,
    typed_options,
    written_options,
)


@pytest.mark.parametrize("method", LITERATURE)
def test_every_option_has_a_type_a_default_and_help(method):
    assert hasattr(learners, LITERATURE[method].factory)
    for name, option in options_of(method).items():
        assert option.type in (int, float, bool, str) or get_args(option.type), name
        assert option.help.endswith("."), name
        assert isinstance(option.default, str if get_args(option.type) else option.type), name


def test_the_dial_is_no_option_of_its_own():
    assert "density" not in options_of("rigl")
    assert "density" in options_of("sca")  # there it is that of a scale


def test_options_are_typed_as_the_factory_s_are():
    assert typed_options("rigl", "drop=0.2,every=50,distribution=er") == {
        "drop": 0.2,
        "every": 50,
        "distribution": "er",
    }
    assert typed_options("zhou", "rescale=False") == {"rescale": False}
    assert typed_options("ttq", "pretrained=100") == {"pretrained": 100}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "dorp=0.2",
            "--method=rigl has no option dorp; it has distribution, drop, schedule, every, until, steps, exempt",
        ),
        ("every=often", r"--rigl.every=often must be a whole number"),
        ("drop=much", r"--rigl.drop=much must be a number"),
        ("distribution=flat", r"--rigl.distribution=flat must be erk or er or uniform"),
        ("every", "cannot read 'every' among a method's options"),
    ],
)
def test_wrong_options_say_what_fits(text, message):
    with pytest.raises(UserError, match=message):
        typed_options("rigl", text)


def test_layers_can_be_left_out_and_an_unknown_one_is_named():
    config = resolve(
        model="fcn",
        method="ttq",
        preset="protocol",
        dataset="mnist",
        samples=1280,
        overrides={"method_options": "exempt=Dense_0+Dense_2"},
    )
    task = build.make_task(config, image_shape=(28, 28, 1), classes=10)
    net, example = task.net(task.numbers), task.example
    masks = net.masks(jax.jit(net.init)(jax.random.key(0), example))
    assert list(masks) == ["Dense_1/kernel"]
    wrong = dataclasses.replace(config, method_options="exempt=Conv_7")
    task = build.make_task(wrong, image_shape=(28, 28, 1), classes=10)
    with pytest.raises(UserError, match="no layer is left for Conv_7; the layers are Dense_0"):
        task.net(task.numbers).init(jax.random.key(0), task.example)


@pytest.mark.parametrize("exempt", ["*", "Dense_0+", "Dense_0+*"])
def test_what_is_left_out_are_layers_by_name(exempt):
    named = {"model": "fcn", "method": "ttq", "preset": "protocol", "dataset": "mnist", "samples": 1280}
    config = resolve(**named, overrides={"method_options": f"exempt={exempt}"})
    with pytest.raises(UserError, match=re.escape(f"--ttq.exempt={exempt} must name layers")):
        build.check_options(config)


def test_all_layers_cannot_be_left_out():
    named = {"model": "fcn", "method": "ttq", "preset": "protocol", "dataset": "mnist", "samples": 1280}
    config = resolve(**named, overrides={"method_options": "exempt=Dense_0+Dense_1+Dense_2"})
    task = build.make_task(config, image_shape=(28, 28, 1), classes=10)
    with pytest.raises(UserError, match="no layer is left to mask; the layers are Dense_0"):
        task.net(task.numbers).init(jax.random.key(0), task.example)


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("ttq", {"method_options": "pretrained=-1"}, "--ttq.pretrained must be at least 0 and finite, got -1."),
        ("rigl", {"density": 0.0}, "--density must be above 0 and at most 1, got 0.0."),
        ("rigl", {"method_options": "drop=3"}, "--rigl.drop must be above 0 and at most 1, got 3.0."),
        ("zhou", {"method_options": "draws=0"}, "--zhou.draws must be at least 1 and finite, got 0."),
        ("zhou", {"method_options": "start=nan"}, "--zhou.start must be finite, got nan."),
        (
            "gem_miner",
            {"method_options": "strength=-1"},
            "--gem_miner.strength must be at least 0 and finite, got -1.0.",
        ),
    ],
)
def test_what_is_out_of_range_is_named_as_it_is_typed(method, given, message):
    named = {"model": "fcn", "preset": "protocol", "dataset": "mnist", "samples": 1280}
    with pytest.raises(UserError, match=re.escape(message)):
        build.check_options(resolve(method=method, **named, overrides=given))


def test_a_text_is_read_back():
    options = {"every": "50", "drop": "0.2"}
    assert written_options(options) == "drop=0.2,every=50"
    assert parsed_options(written_options(options)) == options


def test_what_depends_on_time_is_in_steps():
    assert timed_options("granet", 46_900, 469) == {"every": "500", "steps": "46900"}
    assert timed_options("gem_miner", 46_900, 469) == {"every": "2345", "steps": "46900"}
    assert timed_options("lr_net", 46_900, 469) == {"pretrained": "23450"}
    assert timed_options("edge_popup", 46_900, 469) == {}
