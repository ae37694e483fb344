"""The literature table's nets under a method that it pairs them with: one step of training each, in short."""

import numpy as np
import pytest

from ssm.recipes import build
from ssm.recipes.config import resolve
from ssm.recipes.published import PUBLISHED, TABLE_NETS
from ssm.training.loop import train_members
from tests.conftest import noisy_classes
from tests.support.groups import one_device

PAIRS = (
    ("vgg_small", "mpt"),
    ("vgg_small_1024", "twn"),
    ("vgg_small_1024x2", "bnn"),
    ("vgg19", "force"),
    ("resnet18", "mpt"),
    ("wrn22_2", "rigl"),
    ("vgg_small_1024", "lr_net"),
    ("resnet20", "ttq"),
    ("vgg_small_1024", "set"),
    ("vgg_small_1024", "sca"),
    ("vgg_small_1024x2", "binary_connect"),
    ("vgg19", "granet"),
    ("conv6", "iterand"),
    ("conv8", "edge_popup"),
    ("conv6", "zhou"),
)
EXEMPT = {"rigl": "Conv_0", "lr_net": "Dense_1", "ttq": "Conv_0"}
NARROW = {"width": 0.0625, "batch_size": 8, "epochs": 1, "train_images": 0}


def test_every_net_is_there_and_paired_as_published():
    published = {(model, method) for one in PUBLISHED for model in one.models for method in one.methods}
    assert {model for model, _ in PAIRS} == {*TABLE_NETS, "resnet20", "conv6", "conv8"} and set(PAIRS) <= published


@pytest.mark.slow
@pytest.mark.parametrize(("model", "method"), PAIRS, ids=map("-".join, PAIRS))
def test_one_step_of_the_published_recipe(model, method):
    data = noisy_classes((32, 32, 3), 8, 4)
    options = {"model": model, "method": method, "preset": "published", "dataset": "cifar10", "samples": 8}
    config = resolve(**options, overrides=dict(NARROW))
    trainer = build.trainer(config, data, devices=one_device(), form="xla")
    (outcome,) = train_members(trainer, [build.member(config, 3)], weights=True)
    assert outcome.final["failed_epoch"] is None and np.isfinite(outcome.history[0]["train_loss"])
    assert set(outcome.weights) - set(outcome.masks) == {EXEMPT[one] for one in (method,) if one in EXEMPT}
    for layer, mask in outcome.masks.items():
        assert set(np.unique(mask)) <= {-1, 0, 1} and mask.any()
        assert not outcome.weights[layer][mask == 0].any()
