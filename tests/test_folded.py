import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ssm.training.gauge import from_step, holds, to_step, transpose

from ssm import initializers, learners, thresholds
from ssm.models import FCN
from ssm.supermask import Supermask, effective_weights

X = jnp.ones((2, 12))
CONSTANT = initializers.signed_constant(initializers.he())


def start(**options):
    net = Supermask(FCN(hidden=(6,), classes=4), **{"kernel_init": CONSTANT, **options})
    return net, net.init(jax.random.key(0), X)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"threshold": thresholds.fraction_of_max(0.4)}, True),
        ({"kernel_init": initializers.normal(initializers.he())}, False),
        ({"threshold": thresholds.absolute(0.0)}, False),
        ({"learner": learners.binary}, False),
        ({"learner": learners.baseline}, False),
        ({"threshold": thresholds.quantile(0.3)}, False),  # its two ends are not equally far from 0
    ],
)
def test_holds_where_magnitudes_are_equal_and_thresholds_symmetric(options, expected):
    net, variables = start(**options)
    assert holds(net.learner, variables["frozen"]) is expected


@pytest.mark.parametrize("gauge", [False, True])
def test_there_and_back_is_exact(gauge):
    _, variables = start()
    form = to_step(variables["frozen"], variables["params"], gauge=gauge)
    back = from_step(form)
    jax.tree.map(np.testing.assert_array_equal, back, variables["params"])


def test_the_step_form_holds_one_constant_a_layer_and_the_same_weights():
    net, variables = start()
    form = to_step(variables["frozen"], variables["params"], gauge=True)
    constants = form.frozen["net"]
    assert {leaf.shape for leaf in jax.tree.leaves(constants)} == {()}
    weights = transpose(effective_weights(net.learner, form.frozen, form.params))
    jax.tree.map(np.testing.assert_array_equal, weights, net.weights(variables))
    assert form.params["net"]["Dense_0"]["kernel"].shape == (6, 12)
