"""The literature table's nets under the methods that it pairs them with: one step of training each, in short."""

import numpy as np
import pytest

from ssm.recipes import build
from ssm.recipes.config import resolve
from ssm.recipes.published import PUBLISHED, TABLE_NETS
from ssm.training.loop import train_members
from tests.conftest import noisy_classes
from tests.support.groups import one_device

PAIRS = sorted(
    {(model, method) for one in PUBLISHED for model in one.models for method in one.methods if model in TABLE_NETS}
)
NARROW = {"width": 0.125, "batch_size": 8, "epochs": 1, "validation": 0}


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiled_quickly")]


@pytest.mark.parametrize(("model", "method"), PAIRS, ids="-".join)
def test_one_step_of_the_published_recipe(model, method):
    data = noisy_classes((32, 32, 3), 8, 4)
    config = resolve(
        model=model, method=method, preset="published", dataset="cifar10", samples=8, overrides=dict(NARROW)
    )
    trainer = build.trainer(config, data, devices=one_device())
    (outcome,) = train_members(trainer, [build.member(config, 3)], variables=True)
    assert outcome.final["failed_epoch"] is None
    assert np.isfinite(outcome.history[0]["train_loss"])
    assert all(set(np.unique(mask)) <= {-1, 0, 1} for mask in outcome.masks.values())
