"""What only an accelerator shows; experiments/benchmarks/gpu.py runs these where one is lent."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from ssm.recipes import build
from ssm.recipes.config import resolve
from tests.support.groups import members_of, one_device, train
from tests.support.programs import ROOT

pytestmark = pytest.mark.gpu


def trained(digits, loop="map", precision="float32"):
    """Return what 21 steps of a narrow Conv2 end with, for three seeds, in XLA's form of convolutions."""
    named = {"model": "conv2", "method": "signed", "preset": "default", "dataset": "cifar10"}
    values = {"epochs": 3, "batch_size": 32, "learning_rate": 0.02, "width": 0.125, "precision": precision}
    config = resolve(**named, samples=len(digits.train_labels), overrides=values)
    trainer = build.trainer(config, digits, devices=one_device(), loop=loop, form="xla")
    return train(trainer, members_of(config, [0, 1, 2]))


def losses(result):
    return np.array([row["train_loss"] for row in result.history if row["epoch"] == 3])


@pytest.fixture(scope="module")
def plain(digits):
    return trained(digits)


def test_bfloat16_learns_as_float32_does(plain, digits):
    assert losses(plain).max() < 0.5  # log 4 = 1.39 would be chance
    np.testing.assert_allclose(losses(trained(digits, precision="bfloat16")), losses(plain), atol=0.1)


def test_seeds_one_after_another_and_all_at_once_differ_by_rounding_alone(plain, digits):
    vectorised = trained(digits, loop="vmap")
    np.testing.assert_allclose(losses(vectorised), losses(plain), rtol=1e-3)
    for seed, masks in plain.masks.items():
        for layer, mask in masks.items():
            assert (vectorised.masks[seed][layer] == mask).mean() > 0.995, (seed, layer)


LARGE = """
import numpy as np, ssm
from flax import linen as nn
from ssm.initializers import he, signed_constant

net = ssm.Supermask(nn.Dense(4096), kernel_init=signed_constant(he()))  # an array has 13 MB
x, y = np.random.default_rng(0).normal(size=(64, 784)).astype(np.float32), np.arange(64, dtype=np.int32)
options = ssm.RunOptions(group=64, log=print)
result = ssm.train(net, data=(x, y), test=(x, y), seeds=64, epochs=1, batch_size=32, options=options)
print("seeds", len(result.seeds))
"""


def test_a_group_that_does_not_fit_is_halved(tmp_path):
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
    if jax.default_backend() == "cpu" or not limit:
        pytest.skip("needs a device with memory of its own")
    share = float(os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.75"))
    limited = {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{2.5e9 * share / limit:.6f}", "PYTHONPATH": str(ROOT)}
    call = [sys.executable, "-c", LARGE]
    done = subprocess.run(call, env=os.environ | limited, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "memory does not suffice for 64 seeds at once, 32 are trained together now" in done.stdout
    assert done.stdout.splitlines()[-1] == "seeds 64"
