import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm.errors import UserError
from ssm.initializers import ELUS_CONV
from ssm.ops.matmul import TF32, round_to_bfloat16
from ssm.recipes import build
from ssm.recipes.config import resolve
from ssm.runs.job import recipe_job
from ssm.training.batches import seed_key
from ssm.training.settings import pinned


def config(model="fcn", method="signed", **overrides):
    dataset = "mnist" if model == "fcn" else "cifar10"
    return resolve(model=model, method=method, preset="default", dataset=dataset, samples=60_000, overrides=overrides)


def variables(folded=False, **overrides):
    net = build.build(config(**overrides), folded=folded)
    return net, net.init(seed_key(0), jnp.zeros((1, 28, 28, 1)))


@pytest.mark.parametrize(
    ("overrides", "constant"),
    [
        ({"init": "he"}, np.sqrt(2 / 784)),
        ({"init": "elus"}, np.sqrt(6 / 784)),
        ({"init": "elus", "factor": 1.5}, 1.5 * np.sqrt(2 / 784)),
        ({"init": "xavier"}, np.sqrt(2 / 1084)),
        ({"init": "paper_formula", "p0": 0.5}, np.sqrt(3 / 784)),
    ],
)
def test_frozen_weights_are_the_constants_of_the_ledger(overrides, constant):
    _, made = variables(**overrides)
    kernel = np.asarray(made["frozen"]["layers"]["Dense_0/kernel"].kernel)
    np.testing.assert_allclose(np.abs(kernel), constant, rtol=1e-6)
    assert abs(np.sign(kernel).mean()) < 0.01


def test_scores_are_xavier_uniform_and_hide_an_eighth():
    net, made = variables()
    scores = np.asarray(made["params"]["net"]["Dense_0"]["kernel"])
    bound = np.sqrt(6 / 1084)
    assert np.abs(scores).max() <= bound and np.abs(scores).max() > 0.999 * bound
    hidden = [float((mask == 0).sum()) for mask in net.masks(made).values()]
    assert sum(hidden) / 266_200 == pytest.approx(0.128, abs=0.002)  # ledger, row 5


@pytest.mark.parametrize(("scale", "deviation"), [("he", np.sqrt(2 / 784)), ("elus", np.sqrt(6 / 784))])
@pytest.mark.parametrize("init", ["elus", "xavier"])
def test_scores_have_a_scale_of_their_own(scale, deviation, init):
    _, made = variables(score_scale=scale, init=init)
    assert np.asarray(made["params"]["net"]["Dense_0"]["kernel"]).std() == pytest.approx(deviation, rel=0.01)


def test_the_baseline_is_uniform_of_the_same_variance():
    _, made = variables(method="baseline")
    kernel = np.asarray(made["params"]["net"]["Dense_0"]["kernel"])
    assert kernel.std() == pytest.approx(np.sqrt(1.5 / 784), rel=0.01)
    assert np.abs(kernel).max() <= np.sqrt(4.5 / 784)


def test_bfloat16_rounds_frozen_constants_once():
    _, made = variables(precision="bfloat16")
    for state in made["frozen"]["layers"].values():
        np.testing.assert_array_equal(round_to_bfloat16(state.kernel), state.kernel)
    _, exact = variables()
    for path, state in exact["frozen"]["layers"].items():  # otherwise they are not
        assert not np.array_equal(round_to_bfloat16(state.kernel), state.kernel), path


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"threshold": "fraction_of_max:0.4"}, True),
        ({"weight_distribution": "normal"}, False),
        ({"weight_distribution": "uniform"}, False),
        ({"threshold": "0"}, False),
        ({"threshold": "fraction_of_max:0"}, False),
        ({"method": "binary"}, False),
        ({"method": "baseline"}, False),
        ({"threshold": "quantile:0.3"}, False),  # its two ends are not equally far from 0
    ],
)
def test_signs_are_folded_where_magnitudes_are_equal_and_thresholds_symmetric(options, expected):
    own = config(**options)
    assert build.can_fold(own) is expected
    state = variables(None, **options)[1]["frozen"]["layers"]["Dense_0/kernel"]
    assert hasattr(state, "signs") is expected
    if own.method != "signed":
        return
    # That is so because of what the net holds, whatever the names are.
    plain = variables(**options)[1]["frozen"]["layers"].values()
    magnitudes = all((abs(one.kernel) == abs(one.kernel).max()).all() for one in plain)
    symmetric = all(one.lower == -one.upper and one.upper > 0 for one in plain)
    assert (magnitudes and symmetric) is expected


def test_the_rates_of_steps():
    own = config(learning_rate=0.02, decay_rate=0.5, decay_epochs=1.0, batch_size=10_000)  # six steps an epoch
    rates, decays = build.rates(own, np.arange(6, 12))
    np.testing.assert_allclose(rates, [0.01] * 6)
    np.testing.assert_allclose(decays, [2.5e-4] * 6)
    constant = build.rates(config("resnet20", learning_rate=0.02), np.arange(6, 12))
    np.testing.assert_allclose(constant[0], [0.02] * 6, rtol=1e-6)


@pytest.mark.parametrize(
    ("overrides", "advice"),
    [
        ({"factor": 1.5}, f"smaller --factor than 1.5, such as {ELUS_CONV:.4g}"),
        ({"init": "he", "factor": 1.2}, "smaller --factor than 1.2, such as 1"),
        ({"init": "he", "factor": 1.0}, "smaller --factor than 1, such as 0.5"),
        ({"init": "xavier"}, "such as --init=he --factor=1"),
    ],
)
def test_where_weights_are_too_large_a_smaller_factor_is_named(overrides, advice):
    assert build.smaller_scale(config(**overrides)).endswith(advice)


def test_a_member_has_the_configurations_rates_numbers_and_rule():
    own = config(learning_rate=0.02, threshold="absolute:0.03")
    member = build.member(own, 7, key="a/7", run="a")
    assert (member.seed, member.key, member.run, member.plateau) == (7, "a/7", "a", None)
    assert member.numbers == build.numbers_of(own) == {"threshold": 0.03}
    for found, expected in zip(member.schedule(np.arange(3)), build.rates(own, np.arange(3)), strict=True):
        np.testing.assert_array_equal(found, expected)
    rule = build.member(config("resnet20"), 7).plateau
    assert rule is not None and rule.kind == config("resnet20").schedule


def test_the_data_that_a_job_keeps_is_never_traced(digits):
    kept = []
    jax.jit(lambda x: kept.append(build.parts(config(), digits)) or x)(1.0)
    assert not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(kept))


@pytest.mark.parametrize(
    ("model", "loop"),
    [("fcn", "vmap"), ("conv2", "map"), ("conv8", "map"), ("resnet20", "vmap"), ("resnet110", "vmap"), ("a:B", None)],
)
def test_a_gpu_runs_seeds_one_after_another_where_one_keeps_it_busy(model, loop):
    assert build.accelerator_loop(model) == loop


@pytest.mark.parametrize("precision", ["tf32", "tf32x3"])
def test_tf32_is_for_dense_products_alone(precision):
    """Frozen constants are not rounded, and convolutions are float32's."""
    kernel = build.kernel_init(config(precision=precision))(jax.random.key(0), (784, 300))
    assert not np.array_equal(round_to_bfloat16(kernel), kernel)
    module = build.network(config("conv2"), 10, precision=precision, form="xla")
    images = jax.ShapeDtypeStruct((2, 32, 32, 3), jnp.float32)
    with pinned():
        jaxpr = jax.make_jaxpr(lambda images: module.init_with_output(jax.random.key(0), images)[0])(images)
    asked = {"dot_general": [], "conv_general_dilated": []}
    for line in jaxpr.eqns:
        if line.primitive.name in asked:
            asked[line.primitive.name].append(line.params["precision"])
    assert asked["dot_general"] == [TF32[precision]] * 3
    assert asked["conv_general_dilated"] == [(jax.lax.Precision.HIGHEST,) * 2] * 2


def test_tf32_on_a_cpu_is_one_message(monkeypatch, digits):
    with pytest.raises(UserError, match="--precision=tf32 needs an NVIDIA GPU; on a CPU take float32 or bfloat16"):
        recipe_job(config(precision="tf32"), digits)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert recipe_job(config(precision="tf32"), digits).about["precision"] == "tf32"
