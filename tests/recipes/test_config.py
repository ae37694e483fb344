import math

import pytest

from ssm.errors import UserError
from ssm.recipes.config import check_classes, parse_seeds, resolve


def make(method="signed", preset="default", dataset=None, samples=60_000, model="fcn", **overrides):
    dataset = dataset or ("cifar10" if model.startswith(("conv", "resnet")) else "mnist")
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
    assert (paper.learning_rate, paper.weight_decay, paper.epochs) == (0.008, 5e-4, 50)
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
        ({"model": "lenet"}, "--model=lenet is not known; choose one of: fcn, conv2, conv4, conv6, conv8, resnet20, "),
        ({"method": "ternary"}, "signed, binary, baseline"),
        ({"preset": "finest"}, "default, paper, code, sinn1, sinn2, best"),
        (
            {"dataset": "cifar10"},
            "--model=fcn is not made for --dataset=cifar10; it takes mnist, fashion_mnist, mnist5k",
        ),
        ({"dataset": "cifar10"}, "cifar10 goes with conv2, conv4, conv6, conv8, resnet20, resnet56, resnet110"),
        ({"model": "conv4", "dataset": "mnist"}, "--model=conv4 .* takes cifar10, cifar100, .* mnist goes with fcn"),
        (
            {"model": "resnet20", "dataset": "mnist"},
            "it takes cifar10, cifar100, tfds:NAME, npz:FILE or idx:DIR, and mnist goes with fcn",
        ),
        ({"model": "resnet56", "dataset": "svhn"}, "it takes cifar100, cifar10, tfds:NAME, npz:FILE or idx:DIR"),
        ({"epochs": 0}, "--epochs must be a whole number above 0"),
        ({"batch_size": 0}, "--batch-size must be a whole number above 0"),
        ({"batch_size": 60_001}, "larger than the data set: mnist has 60000"),
        ({"batch_size": 1000, "train_images": 999}, "--batch-size=1000 is larger than the data set: mnist has 999"),
        ({"learning_rate": -0.1}, "--learning-rate must be a number above 0"),
        ({"learning_rate": math.nan}, "--learning-rate"),
        ({"weight_decay": 1.0}, r"--weight-decay must lie in \[0, 1\)"),
        ({"momentum": -0.1}, "--momentum"),
        ({"decay_epochs": 0.0}, "--decay-epochs"),
        ({"threshold": "-0.1"}, "threshold|tau"),
        ({"threshold": "absolute:-0.01"}, "threshold tau must be at least 0 and finite, got -0.01"),
        ({"threshold": "fraction_of_max:-0.4"}, r"threshold p must be in \[0, 1\], got -0.4"),
        ({"threshold": "-0.01", "method": "binary"}, "threshold tau must be at least 0"),
        ({"threshold": "quantile:-0.2"}, r"threshold density must be in \(0, 1\]"),
        ({"threshold": "quantile:2"}, "density"),
        ({"init": "lecun"}, "--init=lecun is not known"),
        ({"order": "sorted"}, "--order=sorted"),
        ({"init": "xavier", "factor": 2.0}, "--factor has no effect on --init=xavier"),
        ({"p0": 0.3}, "--p0 has no effect on --init=elus"),
        ({"method": "baseline", "threshold": "0.1"}, "--threshold has no effect on the baseline"),
        ({"width": 0.0}, "--width must be a number above 0; got 0.0"),
        ({"model": "conv2", "width": -1.0}, "--width must be a number above 0"),
        ({"width": math.inf}, "--width"),
        ({"passes": 0}, "--passes must be a whole number above 0"),
        (
            {"augment": "mixup"},
            "--augment=mixup is not known; choose one of: none, shift, crop_flip, crop_flip_standardize",
        ),
        ({"schedule": "linear"}, "--schedule=linear is not known; choose one of: exponential, plateau"),
        ({"patience": 15}, "--patience has no effect on --schedule=exponential"),
        ({"plateau_factor": 0.2}, "--plateau-factor has no effect on --schedule=exponential"),
        ({"cooldown": 3}, "--cooldown has no effect"),
        ({"min_delta": 0.0}, "--min-delta has no effect"),
        ({"reductions": 3}, "--reductions has no effect"),
        ({"schedule": "plateau", "decay_rate": 0.9}, "--decay-rate has no effect on --schedule=plateau"),
        ({"schedule": "authors_plateau", "decay_epochs": 5.0}, "--decay-epochs has no effect on --schedule=authors_"),
        ({"model": "resnet20", "staircase": True}, "--staircase has no effect on --schedule=plateau"),
        ({"schedule": "plateau", "patience": 0}, "--patience must be a whole number above 0"),
        ({"schedule": "authors_plateau", "patience": 2}, "--patience=2, give at least 3"),
        ({"schedule": "plateau", "plateau_factor": 1.0}, r"--plateau-factor must lie in \(0, 1\); got 1.0"),
        ({"schedule": "plateau", "plateau_factor": 0.0}, r"--plateau-factor must lie in \(0, 1\)"),
        ({"schedule": "plateau", "cooldown": -1}, "--cooldown must be a whole number at or above 0"),
        ({"schedule": "plateau", "reductions": -1}, "--reductions must be a whole number at or above 0"),
        ({"schedule": "plateau", "min_delta": -1e-4}, "--min-delta must be a number at or above 0"),
        (
            {"batch_norm": "frozen"},
            "--batch-norm=frozen does not fit --model=fcn, which takes none, statistics or affine",
        ),
        ({"model": "conv8", "stem_affine": True}, "--stem-affine has no effect on --model=conv8"),
        ({"model": "conv8", "projections": 1}, "--projections has no effect on --model=conv8"),
        ({"model": "resnet20", "batch_norm": "affine", "stem_affine": True}, "no effect on --batch-norm=affine"),
        ({"model": "resnet20", "batch_norm": "none"}, "--batch-norm=none .* takes frozen, statistics or affine"),
        ({"model": "resnet20", "batch_norm": "layer"}, "--batch-norm=layer is not known"),
        ({"model": "resnet20", "projections": 2}, "even number .* as in resnet110; --model=resnet20 has 3"),
        ({"model": "resnet56", "projections": 2}, "--model=resnet56 has 9"),
        ({"model": "resnet110", "projections": 3}, "--projections must be 1 or 2; got 3"),
        ({"model": "conv2", "batch_size": 60_001}, "--batch-size=60001 is larger than the data set: cifar10 has 60000"),
    ],
)
def test_impossible_values_say_what_fits(options, message):
    with pytest.raises(UserError, match=message):
        make(**options)


def test_options_of_the_residual_nets_where_they_fit():
    for method in ("signed", "baseline"):
        assert [make(method, model="resnet110", projections=count).projections for count in (1, 2)] == [1, 2]
    assert make(model="resnet20", batch_norm="frozen", stem_affine=True).stem_affine
    assert make("baseline", model="resnet20", batch_norm="statistics").batch_norm == "statistics"
    assert make(model="resnet20", schedule="exponential", decay_rate=0.9).decay_rate == 0.9
    assert make(schedule="plateau", patience=3).patience == 3
    assert make(width=1.5).width == 1.5


def test_the_number_of_classes_is_the_data_sets():
    check_classes(None, dataset="cifar10", found=10)
    check_classes(10, dataset="cifar10")
    check_classes(100, dataset="cifar100", found=100)
    check_classes(7, dataset="tfds:mine")  # not known before it is loaded
    with pytest.raises(UserError, match=r"--classes=100 .* --dataset=cifar10, which has 10 .* train on cifar100"):
        check_classes(100, dataset="cifar10")
    with pytest.raises(UserError, match=r"--classes=7 .* has 3 classes, an output for each; leave it out\.$") as error:
        check_classes(7, dataset="tfds:mine", found=3)
    assert "train on" not in str(error.value)
    with pytest.raises(UserError, match="train on mnist, fashion_mnist, mnist5k, cifar10"):
        check_classes(10, dataset="cifar100", found=100)


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
