import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from flax.traverse_util import flatten_dict

from ssm import initializers, learners, thresholds
from ssm.errors import UserError
from ssm.optim import sgdw
from ssm.supermask import Supermask, joined
from tests.support.quick import quick

KEY = jax.random.key(0)


class Attention(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=4)(x)


class Norm(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = True):
        x = nn.Conv(4, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.Dropout(0.5, deterministic=not train)(x)
        self.sow("intermediates", "features", x)
        return nn.Dense(3)(x.mean((1, 2)))


class Twice(nn.Module):
    @nn.compact
    def __call__(self, x):
        shared = nn.Dense(x.shape[-1])
        return shared(jnp.tanh(shared(x)))


MODULES = {
    "dense": (nn.Dense(3), jnp.ones((2, 4))),
    "conv": (nn.Conv(3, (3, 3)), jnp.ones((2, 5, 5, 2))),
    "embed": (nn.Embed(7, 3), jnp.arange(4)),
    "attention": (Attention(), jax.random.normal(KEY, (2, 3, 4))),
    "gru": (nn.RNN(nn.GRUCell(3)), jax.random.normal(KEY, (2, 4, 3))),
    "batch norm": (Norm(), jax.random.normal(KEY, (4, 6, 6, 1))),
    "called twice": (Twice(), jnp.ones((2, 4))),
}


def start(module, x, **options):
    net = Supermask(module, **options)
    keys = {"params": KEY, "dropout": jax.random.key(1)}
    return net, net.init(keys, x)


def masked_names(tree):
    return {path for path in flatten_dict(tree) if path[-1] in ("kernel", "embedding")}


@pytest.mark.parametrize("name", quick(MODULES, 3))
def test_any_module_is_masked(name):
    module, x = MODULES[name]
    net, variables = start(module, x)
    plain = module.init({"params": KEY, "dropout": KEY}, x)["params"]
    # Every kernel has scores of its shape, and nothing else is trained: attention's 2-D biases are not kernels.
    scores = flatten_dict(variables["params"]["net"])
    assert set(scores) == masked_names(plain)
    assert {path: leaf.shape for path, leaf in scores.items()} == {
        path: leaf.shape for path, leaf in flatten_dict(plain).items() if path in scores
    }
    frozen = variables["frozen"]
    assert {tuple(path.split("/")) for path in frozen["layers"]} == set(scores)
    kept = joined({path: state.kernel for path, state in frozen["layers"].items()}, frozen["net"])
    chex.assert_trees_all_equal_shapes_and_dtypes(kept, dict(plain))
    for mask in net.masks(variables).values():
        assert set(np.unique(mask)) <= {-1, 0, 1}
    # The wrapped module computes the same with the plain weights; dropout is off, as its key has another path.
    options = {"train": False} if name == "batch norm" else {}
    bare = {name: tree["net"] for name, tree in variables.items() if name not in ("params", "frozen")}
    expected = module.apply({"params": net.weights(variables), **bare}, x, **options)
    np.testing.assert_array_equal(net.apply(variables, x, **options), expected)


@pytest.mark.parametrize("name", quick(MODULES, 3))
def test_training_moves_scores_and_leaves_frozen_bit_identical(name):
    module, x = MODULES[name]
    net, variables = start(module, x)
    collections = {key: tree for key, tree in variables.items() if key != "params"}
    before = jax.tree.map(np.array, collections["frozen"])

    @jax.jit
    def step(params, state):
        def loss(params):
            output, _ = net.apply(
                {"params": params, **collections},
                x,
                rngs={"dropout": KEY},
                mutable=["batch_stats", "intermediates"],
            )
            return jnp.mean((output - 1) ** 2)

        updates, state = sgdw(0.1, 1e-3).update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    params, state = variables["params"], sgdw(0.0, 0.0).init(variables["params"])
    for _ in range(2):
        params, state = step(params, state)
    chex.assert_trees_all_equal(collections["frozen"], before)
    chex.assert_tree_all_finite(params)
    for old, new in zip(jax.tree.leaves(variables["params"]), jax.tree.leaves(params), strict=True):
        assert not np.array_equal(old, new)


def test_effective_weight_is_kernel_times_mask():
    net, variables = start(nn.Dense(3, use_bias=False), jnp.ones((2, 4)))
    kernel, score = variables["frozen"]["layers"]["kernel"].kernel, variables["params"]["net"]["kernel"]
    expected = np.asarray(kernel) * (np.sign(score) * (np.abs(score) >= 0.01))
    np.testing.assert_array_equal(net.weights(variables)["kernel"], expected)
    np.testing.assert_allclose(net.apply(variables, jnp.ones((2, 4)))[0], expected.sum(0), rtol=1e-6)


def test_scores_get_the_kernel_times_the_weight_gradient():
    net, variables = start(nn.Dense(1, use_bias=False), jnp.ones((1, 4)))
    x = jnp.array([[1.0, 2.0, 3.0, 4.0]])
    gradient = jax.grad(lambda p: net.apply({**variables, "params": p}, x).sum())(variables["params"])
    np.testing.assert_allclose(
        gradient["net"]["kernel"], variables["frozen"]["layers"]["kernel"].kernel * x.T, rtol=1e-6
    )


def test_other_parameters_are_frozen_or_trained_as_told():
    module, x = MODULES["batch norm"]
    for others in ("frozen", "trained"):
        _, variables = start(module, x, others=others)
        trained = {path[-1] for path in flatten_dict(variables["params"]["net"])}
        assert trained == ({"kernel"} if others == "frozen" else {"kernel", "bias", "scale"})
        assert "bias" in {path[-1] for path in flatten_dict(variables["frozen"]["net"])} or others == "trained"


def test_batch_statistics_sown_values_and_dropout_pass_through():
    module, x = MODULES["batch norm"]
    net, variables = start(module, x)
    jax.tree.map(
        lambda leaf: np.testing.assert_array_equal(leaf, 0),
        variables["batch_stats"]["net"]["BatchNorm_0"]["mean"],
    )
    outputs = []
    for seed in (1, 1, 2):
        output, changed = net.apply(
            variables, x, rngs={"dropout": jax.random.key(seed)}, mutable=["batch_stats", "intermediates"]
        )
        outputs.append(output)
    assert float(jnp.abs(changed["batch_stats"]["net"]["BatchNorm_0"]["mean"]).sum()) > 0
    assert changed["intermediates"]["net"]["features"][0].shape == (4, 6, 6, 4)
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])
    still = net.apply(variables, x, train=False)  # nothing mutable, no key needed
    assert still.shape == (4, 3)


def test_a_module_called_twice_keeps_one_kernel():
    _, variables = start(*MODULES["called twice"])
    assert set(flatten_dict(variables["params"]["net"])) == {("Dense_0", "kernel")}


def test_one_wrapper_called_twice_in_a_parent_keeps_one_kernel():
    class Parent(nn.Module):
        @nn.compact
        def __call__(self, x):
            masked = Supermask(nn.Dense(4), name="masked")
            return masked(masked(x))

    variables = Parent().init(KEY, jnp.ones((2, 4)))
    assert set(variables["params"]) == {"masked"}
    assert Parent().apply(variables, jnp.ones((2, 4))).shape == (2, 4)


def test_vmap_over_seeds_equals_seeds_alone():
    x = jnp.ones((2, 4))
    net = Supermask(nn.Dense(3))
    keys = jax.random.split(KEY, 3)
    together = jax.vmap(net.init, (0, None))(keys, x)
    outputs = jax.vmap(net.apply, (0, None))(together, x)
    for index, key in enumerate(keys):
        alone = net.init(key, x)
        chex.assert_trees_all_equal(alone, jax.tree.map(lambda leaf, index=index: leaf[index], together))
        np.testing.assert_allclose(net.apply(alone, x), outputs[index], rtol=1e-5)


def test_remat_and_scan():
    x = jnp.ones((2, 4))
    net = nn.remat(Supermask)(nn.Dense(4))
    plain = Supermask(nn.Dense(4))
    variables = plain.init(KEY, x)

    def loss(net):
        return jax.grad(lambda p: net.apply({**variables, "params": p}, x).sum())(variables["params"])

    chex.assert_trees_all_equal(loss(net), loss(plain))

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return Supermask(nn.Dense(4))(x), None

    stack = nn.scan(Layer, variable_axes={"params": 0, "frozen": 0}, split_rngs={"params": True}, length=3)()
    variables = stack.init(KEY, x, None)
    kernels = variables["frozen"]["Supermask_0"]["layers"]["kernel"].kernel
    chex.assert_tree_shape_prefix(variables, (3,))
    assert kernels.shape == (3, 4, 4) and not np.array_equal(kernels[0], kernels[1])
    output, _ = jax.jit(stack.apply)(variables, x, None)
    assert output.shape == (2, 4)


@pytest.mark.slow
def test_attention_kernels_have_the_fans_of_matrices():
    module = nn.MultiHeadDotProductAttention(num_heads=16)
    init = initializers.signed_constant(initializers.he())
    _, variables = start(module, jnp.ones((1, 2, 256)), kernel_init=init)
    scores, state = flatten_dict(variables["params"]["net"]), variables["frozen"]["layers"]
    for name in ("query", "out"):
        assert float(jnp.abs(scores[name, "kernel"]).max()) == pytest.approx(np.sqrt(6 / 512), rel=1e-3)
        np.testing.assert_allclose(np.abs(state[f"{name}/kernel"].kernel), np.sqrt(2 / 256), rtol=1e-6)
    chex.assert_shape([state["query/kernel"].kernel, scores["query", "kernel"]], (256, 16, 16))


def test_kernels_can_be_drawn_anew_and_thresholds_follow_the_rule():
    init = initializers.signed_constant(initializers.he())
    learner = learners.signed(threshold=thresholds.quantile(0.3))
    net, variables = start(nn.Dense(50), jnp.ones((2, 20)), kernel_init=init, learner=learner)
    np.testing.assert_allclose(np.abs(variables["frozen"]["layers"]["kernel"].kernel), np.sqrt(2 / 20), rtol=1e-6)
    assert np.mean(np.asarray(net.masks(variables)["kernel"]) != 0) == pytest.approx(0.3, abs=1e-3)


def test_errors_say_what_to_do():
    with pytest.raises(UserError, match=r"found bias, scale.*kernels"):
        Supermask(nn.LayerNorm()).init(KEY, jnp.ones((2, 4)))
    net, variables = start(nn.Dense(3), jnp.ones((2, 4)))
    with pytest.raises(UserError, match="frozen"):
        net.apply({"params": variables["params"]}, jnp.ones((2, 4)))


@pytest.mark.parametrize(
    "kernels",
    [("layers_0/kernel",), ("layers_[0-1]/*nel",), ["layers_0/kernel"], lambda path: path == "layers_0/kernel"],
)
def test_only_the_layers_that_are_named_are_masked(kernels):
    module = nn.Sequential([nn.Dense(5), nn.relu, nn.Dense(2)])
    net, variables = start(module, jnp.ones((2, 6)), kernels=kernels, others="trained")
    assert set(net.masks(variables)) == {"layers_0/kernel"}
    assert set(flatten_dict(variables["params"]["net"])) == {
        ("layers_0", "kernel"),
        ("layers_0", "bias"),
        ("layers_2", "kernel"),
        ("layers_2", "bias"),
    }
    # What is not masked is a weight like any other: the output follows it.
    gradient = jax.grad(lambda p: net.apply({**variables, "params": p}, jnp.ones((2, 6))).sum())(variables["params"])
    assert float(jnp.abs(gradient["net"]["layers_2"]["kernel"]).sum()) > 0


def stacked_of(net, count, x):
    return jax.vmap(net.init, (0, None))(jax.random.split(KEY, count), x)


@pytest.mark.parametrize("rule", quick([thresholds.fraction_of_max(0.5), thresholds.quantile(0.3)]))
@pytest.mark.parametrize("count", [3, 4])  # 4 seeds broadcast against kernels of 4 columns
def test_stacked_seeds_have_the_masks_and_weights_of_each(rule, count):
    x = jnp.ones((2, 6))
    net = Supermask(nn.Dense(4), learner=learners.signed(threshold=rule))
    stacked = stacked_of(net, count, x)
    for function in (net.masks, net.weights):
        chex.assert_trees_all_equal(function(stacked), jax.vmap(function)(stacked))
    twice = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), stacked)
    chex.assert_trees_all_equal(net.masks(twice)["kernel"][1], net.masks(stacked)["kernel"])


def test_stacked_seeds_of_a_rule_over_columns():
    def init(key, kernel):
        return jax.random.normal(key, kernel.shape), kernel

    def mask(scores, kernel):
        return (jnp.argsort(jnp.argsort(scores, axis=0), axis=0) < 2).astype(scores.dtype)

    learner = learners.layerwise(init, lambda scores, kernel, key: kernel * mask(scores, kernel), mask)
    net = Supermask(nn.Dense(4), learner=learner)
    stacked = stacked_of(net, 6, jnp.ones((2, 6)))
    chex.assert_trees_all_equal(net.masks(stacked), jax.vmap(net.masks)(stacked))


def test_stacked_seeds_take_a_key_each():
    def weight(scores, kernel, key):
        return kernel if key is None else kernel * jax.random.bernoulli(key, 0.5, kernel.shape)

    learner = learners.layerwise(lambda key, kernel: (kernel, kernel), weight, lambda scores, kernel: kernel * 0 + 1)
    net = Supermask(nn.Dense(4), learner=learner)
    stacked, keys = stacked_of(net, 3, jnp.ones((2, 6))), jax.random.split(jax.random.key(5), 3)
    found = net.weights(stacked, keys)["kernel"]
    chex.assert_trees_all_equal(found, jax.vmap(net.weights)(stacked, keys)["kernel"])
    with pytest.raises(UserError, match="3 stacked seeds: give a key for each"):
        net.weights(stacked, keys[0])


def test_a_module_that_a_parent_makes_for_the_wrapper_alone_is_masked():
    class Parent(nn.Module):
        def setup(self):
            self.inner = nn.Dense(4)
            self.masked = Supermask(self.inner)

        def __call__(self, x):
            return self.masked(x)

    variables = Parent().init(KEY, jnp.ones((2, 4)))
    assert set(variables["params"]) == {"masked"}
    Parent().apply(variables, jnp.ones((2, 4)))


def test_a_module_that_is_used_outside_later_is_refused_when_it_is_applied():
    class Parent(nn.Module):
        @nn.compact
        def __call__(self, x):
            layer = nn.Dense(4)
            return layer(Supermask(layer)(x))

    variables = Parent().init(KEY, jnp.ones((2, 4)))
    with pytest.raises(UserError, match="Dense_0 is used outside the Supermask"):
        Parent().apply(variables, jnp.ones((2, 4)))


def test_what_is_no_variables_of_a_supermask_is_said():
    net = Supermask(nn.Dense(4))
    for variables in ({}, {"params": {"kernel": jnp.ones((2, 4))}}, [1]):
        with pytest.raises(UserError, match="not the variables of a Supermask"):
            net.masks(variables)  # type: ignore[arg-type]


def test_a_decode_cache_starts_empty_and_steps():
    x = jnp.linspace(-1, 1, 8).reshape(2, 1, 4)
    net, variables = start(nn.MultiHeadDotProductAttention(2, qkv_features=4, decode=True), x)
    assert int(variables["cache"]["net"]["cache_index"]) == 0
    _, changed = net.apply(variables, x, mutable=["cache"])
    assert int(changed["cache"]["net"]["cache_index"]) == 1


def test_a_method_that_is_named_as_one_of_the_wrapper():
    class Named(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(4)(x)

        def weights(self, x):
            return 2 * self(x)

    net, variables = start(Named(), jnp.ones((2, 4)))
    found = net.apply(variables, jnp.ones((2, 4)), method=Named.weights)
    np.testing.assert_array_equal(found, 2 * net.apply(variables, jnp.ones((2, 4))))
