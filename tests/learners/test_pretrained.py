import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax

from ssm.errors import UserError
from ssm.learners import binary_connect, by_layer, dense, lr_net, pretrained, sca, ttq, twn
from ssm.supermask.reparameterisation import drawn_output
from tests.support.literature import KEY, inputs, objective, sgd, train
from tests.support.quick import quick
from tests.support.short import STEPS, check_run, short_run

KERNELS = inputs("mlp")[2]
LOSS = objective("mlp")
OPTIMIZERS = {"sgd": sgd(0.1, momentum=0.9, decay=0.01), "adam": optax.adamw(0.01, weight_decay=0.1)}


def parts(layers, name):
    return {path: layer[name] for path, layer in layers.items()}


def after(learner, steps, optimizer, begin=None, first=0):
    params, state, opt = (*learner.init(KEY, KERNELS), None) if begin is None else begin
    return train(learner, LOSS, params, state, optimizer, steps, first=first, opt=opt)


@pytest.mark.parametrize("optimizer", quick(OPTIMIZERS.values()), ids=OPTIMIZERS)
@pytest.mark.parametrize("own", [ttq(start="mean"), twn()], ids=["ttq", "twn"])
def test_it_trains_the_kernels_and_then_what_the_learner_makes_of_them(own, optimizer):
    """Under weight decay, too, of which the learner's params know nothing before, nor momentum, nor Adam's count."""
    learner = pretrained(own, 3)
    plain = after(dense(), 3, optimizer)
    found = after(learner, 3, optimizer)
    np.testing.assert_allclose(found.losses, plain.losses, rtol=1e-6)
    chex.assert_trees_all_close(parts(found.params, "dense"), dict(plain.params), rtol=1e-6, atol=1e-7)
    begun = own.init(KEY, parts(found.params, "dense"))
    chex.assert_trees_all_equal((parts(found.params, "own"), parts(found.state, "own")), begun)
    assert not any(jnp.any(leaf) for leaf in jax.tree.leaves(found.opt))
    expected = after(own, 3, optimizer, (*begun, None))
    rest = after(learner, 3, optimizer, (found.params, found.state, found.opt), first=3)
    np.testing.assert_allclose(rest.losses, expected.losses, rtol=1e-6)
    chex.assert_trees_all_close(parts(rest.params, "own"), dict(expected.params), rtol=1e-5, atol=1e-7)


def test_params_that_are_not_in_use_have_no_gradient():
    found = after(pretrained(ttq(), 2), 4, sgd(0.1))
    for step, gradients in enumerate(found.gradients):
        idle, used = (parts(gradients, name) for name in (("own", "dense") if step < 2 else ("dense", "own")))
        assert not any(jnp.any(leaf) for leaf in jax.tree.leaves(idle))
        assert all(jnp.any(leaf) for leaf in jax.tree.leaves(used))


def test_masks_are_1_until_it_starts():
    learner = pretrained(ttq(threshold=0.3), 2)
    for steps in (0, 1, 2):
        found = after(learner, steps, sgd(0.1))
        masks = learner.masks(found.params, found.state)
        if steps < 2:
            chex.assert_trees_all_equal(masks, jax.tree.map(jnp.ones_like, dict(KERNELS)))
            chex.assert_trees_all_equal(learner.weights(found.params, found.state, None), parts(found.params, "dense"))
        else:
            assert all(set(np.unique(mask)) == {-1, 0, 1} for mask in masks.values())


def test_no_penalty_before_and_a_ramp_that_begins_with_the_learner():
    learner = pretrained(sca(strength=0.1, ramp=4), 2)
    found = after(learner, 5, sgd(0.01))
    assert found.penalties[:3] == [0, 0, 0] and all(found.penalties[3:])
    for state in found.state.values():
        assert state["own"]["strength"] == np.float32(0.075)


def test_what_a_learner_does_after_the_optimiser_begins_with_it():
    """BinaryConnect's clipping, and its scaled step."""
    learner = pretrained(binary_connect(size="glorot"), 2)
    found = after(learner, 2, sgd(0.3))
    rest = after(learner, 2, sgd(0.3), (found.params, found.state, found.opt), first=2)
    own = parts(found.params, "own"), parts(found.state, "own")
    expected = train(binary_connect(size="glorot"), LOSS, *own, sgd(0.3), 2)
    chex.assert_trees_all_close(parts(rest.params, "own"), dict(expected.params), rtol=1e-5, atol=1e-7)


def test_outputs_are_drawn_only_then():
    learner = pretrained(lr_net(), 2)
    params, state = learner.init(KEY, {"a": KERNELS["dense1"]})
    found = []
    for started in (False, True):
        state["a"]["started"] = jnp.asarray(started)
        mean, variance = learner.weights(params, state, KEY)["a"], learner.variances(params, state)["a"]
        x = inputs("mlp")[0]
        drawn = drawn_output(lax.dot_general, variance, lambda *_: 1.0, x, mean, (((1,), (0,)), ((), ())))
        found.append(bool(jnp.all(drawn != x @ mean)))
        same = np.array_equal(learner.draw(params, state, KEY)["a"], KERNELS["dense1"])
        assert same != started
    assert found == [False, True]
    assert learner.draws == 7


@pytest.mark.slow
def test_the_first_epoch_is_that_of_a_dense_net():
    begun = short_run(pretrained(lr_net(), STEPS), weight_decay=0.1)
    plain = short_run(dense(), weight_decay=0.1)
    losses = [[row["train_loss"] for row in run.history] for run in (begun, plain)]
    assert losses[0][0] == pytest.approx(losses[1][0], rel=1e-6) and losses[0][1] != losses[1][1]


OWN = {
    "ttq": ttq(density=0.2, start="mean"),
    "lr_net": lr_net(draws=0),
    "by_layer": by_layer({"layers_2": dense(), "*": twn()}),
}


@pytest.mark.slow
@pytest.mark.parametrize("own", OWN)
def test_a_short_run(own):
    """It begins in the middle of the second epoch."""
    result = check_run(pretrained(OWN[own], STEPS + 2), learning_rate=0.05)
    assert set(result.masks) == ({"layers_0"} if own == "by_layer" else {"layers_0", "layers_2"})
    for mask in result.masks.values():
        assert (np.asarray(mask) != 1).any()


def test_without_steps_it_is_the_learner_at_once():
    found, own = after(pretrained(ttq(), 0), 2, sgd(0.1)), after(ttq(), 2, sgd(0.1))
    np.testing.assert_array_equal(found.losses, own.losses)


def test_it_has_the_functions_that_the_learner_has():
    for own in (ttq(), lr_net(), sca(ramp=2), binary_connect(), dense()):
        found = pretrained(own, 2)
        for name in ("update", "penalty", "variances", "draw"):
            assert (getattr(found, name) is None) == (getattr(own, name) is None)
        assert found.has_masks == own.has_masks and found.finish is not None and not found.elementwise


@pytest.mark.parametrize(
    ("given", "said"),
    [((ttq, 3), "takes a learner"), ((ttq(), -1), "steps must be"), ((ttq(), "3"), "steps must be a number")],
)
def test_what_is_no_learner_and_no_number_of_steps_is_refused(given, said):
    with pytest.raises(UserError, match=said):
        pretrained(*given)
