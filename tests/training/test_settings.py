"""JAX's settings that a user has for other work change no result."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.data.standardize import statistics
from ssm.recipes import build
from ssm.runs.history import read_history
from ssm.runs.job import program_hash
from ssm.training.batches import fixed_order, images_on_device
from ssm.training.settings import PINNED, config_states, pinned
from tests.support.groups import members_of, one_device, same, train
from tests.support.programs import Place
from tests.support.runs import short
from tests.support.settings import OTHER, under

SOME_VERSIONS_ONLY = {
    "jax_accurate_erf_inv",
    "jax_use_hlo_logistic_lowering",
    "jax_custom_jvp3",
    "jax_exec_time_optimization_effort",
}


def test_this_version_of_jax_has_the_settings_by_their_names():
    assert PINNED.keys() - set(config_states) <= SOME_VERSIONS_ONLY
    assert OTHER.keys() <= PINNED.keys()


def test_they_are_held_inside_and_as_they_were_outside():
    with under({"jax_enable_x64": True, "jax_random_seed_offset": 7}):
        with pinned():
            assert jnp.zeros(2).dtype == np.float32 and jnp.arange(2).dtype == np.int32
            assert jax.random.key_data(jax.random.key(1))[1] == 1
        assert jnp.zeros(2).dtype == np.float64
        assert jax.random.key_data(jax.random.key(1))[1] == 8


@pytest.mark.slow
def test_a_seed_is_the_same_under_other_settings(digits):
    config = short(digits, epochs=1, weight_distribution="normal", order="fixed")

    def result():
        made = build.trainer(config, digits, devices=one_device())
        return train(made, members_of(config, [3]))

    wanted = result()
    with under(OTHER):
        found = result()
    same(wanted, found, 3)
    chex.assert_trees_all_equal(wanted.variables[3], found.variables[3])


def test_data_and_orders_are_the_same_under_other_settings(digits):
    images, labels = digits.train_images[:20], np.arange(20)
    wanted, order = images_on_device(images, labels), fixed_order(20)
    with under(OTHER):
        found = images_on_device(images, labels)
        np.testing.assert_array_equal(fixed_order(20), order)
    chex.assert_trees_all_equal(wanted, found)
    assert found.labels.dtype == np.int32
    np.testing.assert_array_equal(found.mean, jax.jit(statistics)(images)[0])


@pytest.mark.parametrize("options", [{}, {"precision": "bfloat16"}], ids=str)
def test_a_step_and_an_evaluation_promote_no_dtypes(digits, monkeypatch, options):
    monkeypatch.setattr("ssm.training.settings.PINNED", {**PINNED, "jax_numpy_dtype_promotion": "strict"})
    config = short(digits, **options)
    program_hash(build.task_of(config, digits), build.parts(config, digits)[0])  # traces both


ENVIRONMENT = {
    "JAX_ENABLE_X64": "1",
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",
    "JAX_THREEFRY_PARTITIONABLE": "0",
    "JAX_DEFAULT_PRNG_IMPL": "rbg",
    "JAX_RANDOM_SEED_OFFSET": "7",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16",
    "JAX_DISABLE_JIT": "1",
    "JAX_TRANSFER_GUARD": "disallow",
}


@pytest.mark.slow
def test_the_program_writes_the_same_under_each_environment_variable(tmp_path, monkeypatch):
    def content(out):
        options = ("--dataset=mnist5k", "--width=0.1", "--seeds=2", "--epochs=1")
        ran = Place(tmp_path, tmp_path).program("train.py", *options, f"--out={out}")
        assert ran.returncode == 0, ran.stderr
        (folder,) = (tmp_path / out).iterdir()
        rows = [{**row, "seconds": 0} for row in read_history(folder / "history.csv")]
        return rows, [path.read_bytes() for path in sorted(folder.glob("masks/*.npz"))]

    wanted = content("none")
    for name, value in ENVIRONMENT.items():
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert content(name) == wanted, name
