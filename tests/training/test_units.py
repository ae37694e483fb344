import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ssm import learners, optim
from ssm.training.step import Params, State
from ssm.training.task import Hidden, Units
from ssm.training.units import live_units, narrowed, reordered, unit_axes, with_first
from tests.support.tasks import masked

HIDDEN = Hidden(
    units={"Dense_0": Units(fed=("Dense_0/kernel",), used=("Dense_1/kernel",))},
    resized=lambda sizes: None,
    reach=lambda state: optim.reach(state, momentum=0.5, nesterov=True),
    worth=0.0,
)
BELOW, ABOVE = 0.009, -0.011  # of the thresholds of 0.01
FIRST = [[BELOW, -BELOW], [BELOW, ABOVE], [BELOW, BELOW], [0.0, 0.0], [BELOW, BELOW]]
SECOND = [[BELOW, BELOW, ABOVE, 0.0, BELOW], [BELOW, BELOW, BELOW, 0.0, BELOW]]
VELOCITY = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0.003]]  # 0.003 * 0.5 ** 2 / 0.5 is more than is missing
LIVE = [False, True, True, False, True]


def state_of(first, second, velocity, *, transposed):
    turn = (lambda array: jnp.asarray(array, jnp.float32)) if transposed else lambda a: jnp.asarray(a, jnp.float32).T
    layers = {"Dense_0/kernel": turn(first), "Dense_1/kernel": turn(second)}
    _, learner = learners.signed(folded=True).init(jax.random.key(0), layers)
    moving = {"Dense_0/kernel": turn(velocity), "Dense_1/kernel": jnp.zeros_like(layers["Dense_1/kernel"])}
    optimizer = optim.sgdw(0.1, 0.01).init(Params(layers, {}))
    optimizer = optax.tree_utils.tree_set(optimizer, trace=Params(moving, {}))
    return State(Params(layers, {}), learner, optimizer, {}, {})


@pytest.mark.parametrize("transposed", [True, False])
def test_a_unit_is_dead_for_good_if_nothing_on_either_side_can_return(transposed):
    state = state_of(FIRST, SECOND, VELOCITY, transposed=transposed)
    found = live_units(HIDDEN, masked(learners.signed()), state, transposed=transposed)
    assert found["Dense_0"].tolist() == LIVE


@pytest.mark.parametrize("transposed", [True, False])
def test_parts_of_a_state_in_another_order(transposed):
    whole = state_of(FIRST, SECOND, VELOCITY, transposed=transposed)
    order = {"Dense_0": jnp.array([1, 2, 4, 0, 3])}
    turned = reordered(HIDDEN, whole, order, transposed=transposed)
    part = narrowed(HIDDEN, turned, (("Dense_0", 3),), transposed=transposed)
    first, second = part.params.layers["Dense_0/kernel"], part.params.layers["Dense_1/kernel"]
    expected = np.asarray(FIRST, np.float32)[[1, 2, 4]], np.asarray(SECOND, np.float32)[:, [1, 2, 4]]
    chex.assert_trees_all_equal((first, second), expected if transposed else tuple(one.T for one in expected))
    assert part.learner["Dense_0/kernel"].signs.shape == first.shape
    assert part.learner["Dense_0/kernel"].constant.shape == ()
    moved = jax.tree.map(lambda leaf: leaf + 1, part)
    joined = with_first(HIDDEN, turned, moved, (("Dense_0", 3),), transposed=transposed)
    chex.assert_trees_all_equal(narrowed(HIDDEN, joined, (("Dense_0", 3),), transposed=transposed), moved)
    back = reordered(HIDDEN, joined, {"Dense_0": jnp.argsort(order["Dense_0"])}, transposed=transposed)
    kernel, before = (one.params.layers["Dense_0/kernel"] for one in (back, whole))
    np.testing.assert_array_equal(
        kernel if transposed else kernel.T,
        (before if transposed else before.T) + np.array([[0], [1], [1], [0], [1]], np.float32),
    )


def test_axes_of_a_kernel():
    assert unit_axes(HIDDEN, "Dense_0/kernel", 2, transposed=False) == {"Dense_0": 1}
    assert unit_axes(HIDDEN, "Dense_0/kernel", 2, transposed=True) == {"Dense_0": 0}
    assert unit_axes(HIDDEN, "Dense_1/kernel", 2, transposed=False) == {"Dense_0": 0}
    assert unit_axes(HIDDEN, "Dense_2/kernel", 2, transposed=False) == {}
    assert unit_axes(HIDDEN, "Dense_0/kernel", 4, transposed=True) == {"Dense_0": 3}
