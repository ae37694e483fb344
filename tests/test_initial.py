import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.analysis import shares
from ssm.build import INIT, build, seed_key
from ssm.config import resolve
from ssm.errors import UserError
from ssm.finished import FinishedRun
from ssm.initial import config_of, initial_masks
from ssm.train import beginning, make_trainer


def config(model="fcn", method="signed", dataset="mnist", **overrides):
    return resolve(model=model, method=method, preset="default", dataset=dataset, samples=205, overrides=overrides)


def test_they_are_the_masks_of_the_initialised_net():
    made = config("conv2", "binary", "cifar10", width=0.1)
    found = initial_masks(made, [3, 8], (8, 8, 3), 10)
    assert found["Conv_0"].shape == (2, 3, 3, 3, 6) and found["Conv_0"].dtype == np.int8
    net = build(made)
    init = jax.jit(net.init)
    for place, seed in enumerate((3, 8)):
        variables = init(jax.random.fold_in(seed_key(seed), INIT), jnp.zeros((1, 8, 8, 3)))
        for path, mask in net.masks(variables).items():
            np.testing.assert_array_equal(found[path.removesuffix("/kernel")][place], mask)


def test_training_begins_with_them(digits):
    made = config(threshold="quantile:0.3")
    program = make_trainer(made, digits, devices=jax.devices()[:1]).program
    begun, _ = program.finish(program.start(program.place(beginning([(made, 7)]))))
    found = initial_masks(made, [7], (28, 28, 1), 4)
    assert list(found) == list(begun) == ["Dense_0", "Dense_1", "Dense_2"]
    for layer, mask in found.items():
        np.testing.assert_array_equal(mask, begun[layer])
        assert np.unique(mask, return_counts=True)[1] / mask.size == pytest.approx([0.15, 0.7, 0.15])


def test_an_eighth_is_hidden():
    found = shares(initial_masks(config(), [0], (28, 28, 1), 10))["all"]
    assert found.zero[0] == pytest.approx(0.128, abs=0.002)  # ledger, row 5


def test_what_has_no_masks_is_refused():
    with pytest.raises(UserError, match="baseline"):
        initial_masks(config(method="baseline"), [0], (28, 28, 1), 10)
    with pytest.raises(UserError, match="no seeds"):
        initial_masks(config(), [], (28, 28, 1), 10)


def test_a_runs_configuration_is_completed(tmp_path):
    made = config()
    older = {name: value for name, value in made.as_dict().items() if name not in ("width", "batch_norm", "passes")}
    assert config_of(FinishedRun(tmp_path, made.as_dict(), {})) == config_of(FinishedRun(tmp_path, older, {})) == made
    with pytest.raises(UserError, match=r"does not know: \['depth'\]"):
        config_of(FinishedRun(tmp_path, older | {"depth": 3}, {}))
