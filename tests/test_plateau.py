import json
import math
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssm import plateau
from ssm.errors import UserError
from ssm.plateau import PlateauRule, PlateauState

GOLDEN = pathlib.Path(__file__).parent / "golden" / "authors-plateau.json"
EPOCHS = 60
ODD = [math.nan, math.inf, -math.inf]


def states(rule, losses, state=None):
    found = []
    state = state or plateau.start()
    for loss in losses:
        state = plateau.update(rule, state, loss)
        found.append(state)
    return found


def reduced_at(rule, losses):
    """The epochs, counted from 0, after which the scale is lower."""
    counts = [0, *(state.reductions for state in states(rule, losses))]
    return [epoch for epoch in range(len(losses)) if counts[epoch + 1] > counts[epoch]]


def authors(**options):
    return PlateauRule(kind="authors_plateau", **options)


def golden():
    trace = json.loads(GOLDEN.read_text())
    options = {name: trace[name] for name in ("factor", "patience", "cooldown", "min_delta", "reductions")}
    return trace, authors(**options)


def test_authors_trace():
    trace, rule = golden()
    found = states(rule, trace["losses"])
    rates = [0.2 * state.scale for state in found]
    np.testing.assert_allclose(rates, trace["learning_rate_after_epoch"], rtol=1e-12, atol=0)
    assert [state.reductions for state in found] == trace["reductions_after_epoch"]
    assert [plateau.stopped(rule, state) for state in found] == [False] * 97 + [True]


@pytest.mark.parametrize("cut", [3, 30, 53, 60])
@pytest.mark.parametrize("kind", ["plateau", "authors_plateau"])
def test_state_goes_through_strict_json(kind, cut):
    trace, _ = golden()
    losses = [*trace["losses"][: cut - 2], math.nan, *trace["losses"][cut - 1 :]]
    rule = PlateauRule(kind=kind, patience=5)
    whole = states(rule, losses)
    text = json.dumps(whole[cut], allow_nan=False)
    assert states(rule, losses[cut + 1 :], PlateauState(*json.loads(text))) == whole[cut + 1 :]


@pytest.mark.parametrize("kind", ["plateau", "authors_plateau"])
def test_the_state_passed_in_is_not_changed(kind):
    rule = PlateauRule(kind=kind, patience=3)
    before = states(rule, [3.0, 2.0])[-1]
    copy = json.dumps(before)
    assert plateau.update(rule, before, 1.0) == plateau.update(rule, before, np.float32(1.0)) != before
    assert json.dumps(before) == copy


# The usual rule

quarters = st.integers(0, 40).map(
    lambda value: value / 4
)  # exact in float32 too, as min_delta is: optax computes there


@jax.jit
def optax_scales(losses, patience, cooldown):
    rule = optax.contrib.reduce_on_plateau(0.5, patience, rtol=0.0, atol=0.25, cooldown=cooldown)

    def step(state, loss):
        _, state = rule.update({}, state, value=loss)
        return state, state.scale

    return jax.lax.scan(step, rule.init(jnp.zeros(())), losses)[1]


@settings(deadline=None)
@given(
    losses=st.lists(quarters | st.sampled_from([math.nan, math.inf]), max_size=EPOCHS),
    patience=st.integers(1, 6),
    cooldown=st.integers(0, 5),
)
def test_usual_rule_is_optax(losses, patience, cooldown):
    rule = PlateauRule(factor=0.5, patience=patience, cooldown=cooldown, min_delta=0.25)
    padded = np.asarray(losses + [0.0] * (EPOCHS - len(losses)), np.float32)
    expected = optax_scales(padded, patience, cooldown)[: len(losses)]
    assert [state.scale for state in states(rule, losses)] == expected.tolist()


def test_usual_rule_by_hand():
    rule = PlateauRule(factor=0.5, patience=2, cooldown=0, min_delta=0.1)
    # 0.95 is lower, but not by more than 0.1; 0.85 is, and the count starts again.
    found = states(rule, [1.0, 0.95, 0.85, 0.85, 0.85, 0.85, 0.85])
    assert [state.wait for state in found] == [0, 1, 0, 1, 0, 1, 0]
    assert [state.scale for state in found] == [1, 1, 1, 1, 0.5, 0.5, 0.25]
    assert [state.epoch for state in found] == [1, 2, 3, 4, 5, 6, 7]


def test_usual_rule_passes_over_the_cooldown_but_keeps_its_best():
    rule = PlateauRule(patience=2, cooldown=3)
    assert reduced_at(rule, [1.0] * 12) == [2, 7]  # 3, 4 and 5 aren't counted; 6 and 7 are
    # The 0.5 in the cooldown is the best from then on, so the 0.7s after it are no improvement.
    assert reduced_at(rule, [1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 0.8, 0.7]) == [2, 7]


# The authors' rule


def falling(count):
    return [100.0 - epoch for epoch in range(count)]


def test_authors_rule_looks_from_the_eleventh_epoch_and_reduces_past_patience():
    assert reduced_at(authors(patience=3, cooldown=0), [1.0] * 17) == [13, 14, 15, 16]
    assert reduced_at(authors(patience=4, cooldown=2), [1.0] * 21) == [14, 17, 20]


def test_authors_count_is_never_reset():
    # Each rise adds 1 however long ago the last one was; an improvement on the way only delays.
    losses = [*falling(10), 95.0, 50.0, 95.0, 49.0, 95.0, 48.0, 95.0, 47.0, 46.0, 95.0, 45.0]
    assert reduced_at(authors(patience=3, cooldown=0), losses) == [16, 19]


def test_authors_rule_compares_with_patience_minus_two_losses():
    # Patience 5: the 1.0 counts against the three epochs after it, no longer.
    losses = [*falling(11), 1.0, 80.0, 79.0, 78.0, 77.0, 76.0]
    assert [state.wait for state in states(authors(patience=5), losses)][10:] == [0, 0, 1, 2, 3, 3, 3]


def test_authors_min_delta_makes_it_harder():
    rule = authors(patience=3, min_delta=0.25)
    losses = [8.0] * 10
    assert states(rule, [*losses, 7.75])[-1].wait == 1  # 7.75 + 0.25 isn't below 8
    assert states(rule, [*losses, 7.5])[-1].wait == 0


def test_authors_cooldown_is_blind():
    # Nothing is counted in the cooldown, but its losses are compared with later.
    losses = [*[1.0] * 15, 0.25, 1.0, 0.5]
    found = states(authors(patience=4, cooldown=2), losses)
    assert [state.wait for state in found][14:] == [5, 5, 5, 6]
    assert [state.reductions for state in found][14:] == [1, 1, 1, 2]


# Both


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("kind", ["plateau", "authors_plateau"])
def test_a_loss_that_is_not_finite_is_no_improvement(kind, odd):
    rule = PlateauRule(kind=kind, patience=3, cooldown=0)
    found = states(rule, [*falling(12), odd, odd, 88.0, 87.0])
    assert [state.wait for state in found][11:] == ([0, 1, 2, 0, 0] if kind == "plateau" else [0, 1, 2, 2, 2])
    assert reduced_at(rule, [odd] * 14) == ([2, 5, 8, 11] if kind == "plateau" else [13])


@pytest.mark.parametrize("reductions, expected", [(0, [False] * 4), (2, [False, False, True, True])])
def test_stops_after_its_reductions(reductions, expected):
    rule = PlateauRule(patience=1, cooldown=0, reductions=reductions)
    assert [plateau.stopped(rule, state) for state in states(rule, [1.0] * 4)] == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "step"},
        {"factor": 1.0},
        {"factor": 0.0},
        {"patience": 0},
        {"kind": "authors_plateau", "patience": 2},
        {"cooldown": -1},
        {"min_delta": -1e-4},
        {"min_delta": math.nan},
        {"reductions": -1},
    ],
    ids=str,
)
def test_impossible_rules_fail(wrong):
    with pytest.raises(UserError, match=list(wrong)[-1]):
        PlateauRule(**wrong)
