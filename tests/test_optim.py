import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ssm.errors import UserError
from ssm.optim import adam, cosine, exponential, reach, sgdw


def run(rule_of, gradients, start=2.0):
    params = jnp.float32(start)
    state = rule_of(0).init(params)
    for index, gradient in enumerate(gradients):
        updates, state = rule_of(index).update(jnp.float32(gradient), state, params)
        params = optax.apply_updates(params, updates)
    return float(params)


def test_decoupled_steps_by_hand():
    # a1 = -0.1 * 1 = -0.1; v1 = 2 - 0.01 * 2 + 0.9 * -0.1 - 0.1 = 1.79
    assert run(lambda i: sgdw(0.1, 0.01), [1.0]) == pytest.approx(1.79, rel=1e-6)
    # a2 = 0.9 * -0.1 - 0.1 * 3 = -0.39; v2 = 1.79 - 0.0179 + 0.9 * -0.39 - 0.3 = 1.1211
    assert run(lambda i: sgdw(0.1, 0.01), [1.0, 3.0]) == pytest.approx(1.1211, rel=1e-6)


def test_learning_rate_is_inside_the_velocity():
    # a1 = -0.1, a2 = 0.9 * a1 - 0.05 = -0.14: the first step's rate stays in the velocity.
    rates = [0.1, 0.05]
    plain = run(lambda i: sgdw(rates[i], 0.0, nesterov=False), [1.0, 1.0], start=0.0)
    assert plain == pytest.approx(-0.1 - 0.14, rel=1e-6)


def test_coupled_decay_is_the_l2_gradient():
    # g + wd v = 1 + 0.02 = 1.02; v = 2 - 0.1 * 1.02 * 1.9 = 1.8062
    assert run(lambda i: sgdw(0.1, 0.01, decay="coupled"), [1.0]) == pytest.approx(1.8062, rel=1e-6)


def test_coupled_equals_optax_sgd_with_decayed_gradient():
    ours = run(lambda i: sgdw(0.1, 0.01, decay="coupled"), [1.0, -2.0, 0.5])
    theirs = optax.chain(optax.add_decayed_weights(0.01), optax.sgd(0.1, momentum=0.9, nesterov=True))
    assert ours == pytest.approx(run(lambda i: theirs, [1.0, -2.0, 0.5]), rel=1e-6)


def test_new_rates_do_not_recompile():
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def step(params, state, learning_rate, weight_decay):
        updates, state = sgdw(learning_rate, weight_decay).update(params, state, params)
        return optax.apply_updates(params, updates), state

    params = jnp.ones(3)
    state = sgdw(0.0, 0.0).init(params)
    for rate in (0.1, 0.2, 0.3):
        params, state = step(params, state, rate, rate / 10)


def test_schedule_values():
    steps = np.array([0, 9, 10, 19, 20])
    np.testing.assert_allclose(exponential(steps, rate=0.5, steps=10), [1, 1, 0.5, 0.5, 0.25])
    np.testing.assert_allclose(
        exponential(np.array([0, 5, 10]), rate=0.25, steps=10, staircase=False), [1, 0.5, 0.25], rtol=1e-6
    )


def test_an_unknown_decay_is_refused():
    with pytest.raises(UserError, match="decay must be 'decoupled' or 'coupled'; got 'couple'"):
        sgdw(0.1, 0.1, decay="couple")  # type: ignore[arg-type]


@pytest.mark.parametrize(("nesterov", "momentum", "moves"), [(True, 0.9, 8.1), (False, 0.9, 9.0), (True, 0.0, 0.0)])
def test_how_far_a_parameter_moves_without_a_gradient(nesterov, momentum, moves):
    options = {"momentum": momentum, "nesterov": nesterov}
    rule = sgdw(0.1, 0.0, **options)
    params = jnp.float32(0.0)
    _, state = rule.update(jnp.float32(-10.0), rule.init(params), params)  # the velocity is 1
    assert float(reach(state, **options)) == pytest.approx(moves, rel=1e-6)

    def step(_, carry):
        updates, state = rule.update(jnp.float32(0.0), carry[1], carry[0])
        return optax.apply_updates(carry[0], updates), state

    after, _ = jax.lax.fori_loop(0, 500, step, (params, state))
    assert float(after) == pytest.approx(moves, rel=1e-5)


def test_adam_is_optax_s_and_its_decay_is_where_it_is_asked_for():
    gradients = [1.0, -0.5, 2.0]
    assert run(lambda i: adam(0.1, 0.0), gradients) == pytest.approx(run(lambda i: optax.adam(0.1), gradients))
    coupled = run(lambda i: optax.chain(optax.add_decayed_weights(0.3), optax.adam(0.1)), gradients)
    assert run(lambda i: adam(0.1, 0.3), gradients) == pytest.approx(coupled)
    # The first step of Adam is the rate: 2 - 0.1 - 0.3 * 2.
    assert run(lambda i: adam(0.1, 0.3, decay="decoupled"), [5.0]) == pytest.approx(1.3)
    with pytest.raises(UserError, match="decay must be 'decoupled' or 'coupled'"):
        adam(0.1, 0.0, decay="none")


def test_a_cosine_by_hand():
    np.testing.assert_allclose(
        cosine(np.asarray([0, 25, 50, 75, 99]), steps=100)[:4], [1, 0.853553, 0.5, 0.146447], rtol=1e-5
    )
    np.testing.assert_allclose(cosine(np.asarray([0, 25, 50, 75]), steps=100, cycles=2), [1, 0.5, 1, 0.5], rtol=1e-6)
    assert cosine(100 - 1, steps=100) == pytest.approx(0.5 - 0.5 * np.cos(np.pi / 100))
