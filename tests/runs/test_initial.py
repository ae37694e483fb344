import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.analysis import shares
from ssm.errors import UserError
from ssm.export.flax_module import initial_frozen
from ssm.files import write_json
from ssm.recipes.build import build, member, trainer
from ssm.recipes.config import resolve
from ssm.runs.initial import config_of, initial_masks
from ssm.runs.reader import FinishedRun
from ssm.training.batches import INIT, seed_key
from ssm.training.frozen import frozen_hash
from tests.support.groups import begun, one_device


def config(model="fcn", method="signed", dataset="mnist", **overrides):
    return resolve(model=model, method=method, preset="default", dataset=dataset, samples=205, overrides=overrides)


def run_of(folder, config, seeds=(3, 8)):
    """Return a run of digits of four classes, of which nothing is there but what masks are made again from."""
    environment = {"image_shape": (28, 28, 1), "class_names": ("a", "b", "c", "d")}
    write_json(folder / "environment.json", [{"environment": environment, "seeds": seeds}])
    frozen = {str(seed): frozen_hash(initial_frozen(config, seed, (28, 28, 1), 4)) for seed in seeds}
    return FinishedRun(folder, config.as_dict(), {"frozen": frozen})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_of(tmp_path_factory.mktemp("run"), config())


@pytest.fixture(scope="module")
def found(run):
    return initial_masks(run, [3, 8])


def test_they_are_the_masks_of_the_initialised_net(found):
    net = build(config(), classes=4)
    init = jax.jit(net.init)
    for place, seed in enumerate((3, 8)):
        variables = init(jax.random.fold_in(seed_key(seed), INIT), jnp.zeros((1, 28, 28, 1)))
        made = {path.removesuffix("/kernel"): mask for path, mask in net.masks(variables).items()}
        assert list(found) == list(made) == ["Dense_0", "Dense_1", "Dense_2"]
        for layer, mask in made.items():
            np.testing.assert_array_equal(found[layer][place], mask)
            assert found[layer].dtype == np.int8


def test_training_begins_with_them(digits, found):
    made = trainer(config(), digits, devices=one_device())
    masks = made.program.masks(begun(made, [member(config(), 8)]))
    for layer, mask in found.items():
        np.testing.assert_array_equal(mask[1:], masks[layer])


def test_an_eighth_is_hidden(found):
    zero = shares(found)["all"].zero
    assert zero == pytest.approx([0.128] * 2, abs=0.002)  # ledger, row 5


def test_seeds_that_give_other_frozen_weights_are_refused_and_unknown_ones_said(run):
    other = FinishedRun(run.folder, run.config, {"frozen": {"3": "0" * 16}})
    with pytest.raises(UserError, match="the frozen weights that seed 3 gives here"):
        initial_masks(other, [3])
    with pytest.warns(UserWarning, match="older version"):
        initial_masks(other, [8])


def test_what_has_no_masks_is_refused(tmp_path, run):
    with pytest.raises(UserError, match="baseline"):
        initial_masks(FinishedRun(tmp_path, config(method="baseline").as_dict(), {}), [0])
    with pytest.raises(UserError, match="no seeds"):
        initial_masks(run, [])


def test_a_runs_configuration_is_completed(tmp_path):
    made = config()
    older = {name: value for name, value in made.as_dict().items() if name not in ("width", "batch_norm", "passes")}
    assert config_of(FinishedRun(tmp_path, made.as_dict(), {})) == config_of(FinishedRun(tmp_path, older, {})) == made
    with pytest.raises(UserError, match=r"does not know: depth; use"):
        config_of(FinishedRun(tmp_path, older | {"depth": 3}, {}))
