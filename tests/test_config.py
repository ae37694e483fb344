import math

import pytest

from ssm.config import parse_seeds, resolve
from ssm.errors import UserError


def make(method="signed", preset="default", dataset="mnist", samples=60_000, model="fcn", **overrides):
    return resolve(model=model, method=method, preset=preset, dataset=dataset, samples=samples, overrides=overrides)


def test_the_default_is_the_papers_recipe_reshuffled():
    config = make()
    assert (config.learning_rate, config.weight_decay, config.epochs, config.batch_size) == (
        0.05,
        5e-4,
        100,
        128,
    )
    assert (config.decay_rate, config.decay_steps, config.staircase) == (0.96, 4690, True)
    assert (config.init, config.factor, config.threshold) == ("elus", math.sqrt(3), "absolute:0.01")
    assert (config.order, config.loss, config.decay) == ("reshuffle", "log_softmax", "decoupled")


def test_presets_follow_the_ledger():
    paper, code = make(preset="paper"), make(preset="code")
    assert (paper.order, paper.threshold, paper.loss) == ("fixed", "absolute:0.01", "log_softmax")
    assert (code.order, code.threshold, code.loss) == ("reshuffle", "fraction_of_max:0.4", "clipped")
    assert (code.decay_rate, code.staircase) == (0.9, False)
    paper, code = make("baseline", "paper"), make("baseline", "code")
    assert (paper.learning_rate, paper.weight_decay, paper.epochs) == (0.008, 7e-4, 50)
    assert (code.learning_rate, code.weight_decay, code.epochs) == (0.01, 5e-4, 50)
    assert (paper.init, paper.weight_distribution, paper.factor) == ("elu", "uniform", 1.0)
    assert make("binary", "paper").learning_rate == 0.05
    assert make("binary", "code").threshold == "absolute:0.01"
    assert make(init="he").factor == 1.0


def test_mnist5k_has_a_recipe_of_its_own_under_the_default_preset():
    config = make(dataset="mnist5k", samples=4_000)
    assert (config.batch_size, config.weight_decay, config.epochs) == (64, 1e-3, 200)
    assert (config.decay_rate, config.decay_steps) == (0.5, 2000)
    assert make(dataset="mnist5k", samples=4_000, preset="paper").epochs == 100
    assert make(dataset="mnist5k", samples=4_000, decay_epochs=10.0).decay_steps == 630


def test_what_the_user_says_wins():
    assert make(preset="paper", order="reshuffle", epochs=3, learning_rate=0.1).as_dict() == {
        **make(preset="paper").as_dict(),
        "order": "reshuffle",
        "epochs": 3,
        "learning_rate": 0.1,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "lenet"}, "--model=lenet is not known; choose one of: fcn"),
        ({"method": "ternary"}, "signed, binary, baseline"),
        ({"preset": "best"}, "default, paper, code"),
        ({"dataset": "cifar10"}, "--model=fcn is not made for --dataset=cifar10"),
        ({"epochs": 0}, "--epochs must be a whole number above 0"),
        ({"batch_size": 0}, "--batch-size must be a whole number above 0"),
        ({"batch_size": 60_001}, "larger than the data set: mnist has 60000"),
        ({"learning_rate": -0.1}, "--learning-rate must be a number above 0"),
        ({"learning_rate": math.nan}, "--learning-rate"),
        ({"weight_decay": 1.0}, r"--weight-decay must lie in \[0, 1\)"),
        ({"momentum": -0.1}, "--momentum"),
        ({"decay_epochs": 0.0}, "--decay-epochs"),
        ({"threshold": "-0.1"}, "threshold|tau"),
        ({"threshold": "quantile:2"}, "density"),
        ({"init": "lecun"}, "--init=lecun is not known"),
        ({"order": "sorted"}, "--order=sorted"),
        ({"init": "xavier", "factor": 2.0}, "--factor has no effect on --init=xavier"),
        ({"p0": 0.3}, "--p0 has no effect on --init=elus"),
        ({"method": "baseline", "threshold": "0.1"}, "--threshold has no effect on the baseline"),
    ],
)
def test_impossible_values_say_what_fits(options, message):
    with pytest.raises(UserError, match=message):
        make(**options)


def test_seeds():
    assert parse_seeds("3") == [0, 1, 2]
    assert parse_seeds("2:5") == [2, 3, 4]
    assert parse_seeds(":2") == [0, 1]
    assert parse_seeds("7,3,7") == [3, 7]


@pytest.mark.parametrize(
    "text", ["", "0", "5:5", "x", "-1", "1,-2", "3:1", "1.5", "1:2:3", "2000000000", "9" * 30, "2147483648,1"]
)
def test_seeds_that_name_none_are_an_error(text):
    with pytest.raises(UserError, match="names no seeds"):
        parse_seeds(text)
