"""What Flax modules can do, each tried with a module by itself and inside a Supermask: the table of docs/flax.md.

python tests/support/flax_features.py    prints the table
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import linen as nn
from flax import nnx, serialization
from flax.core import DenyList, meta
from flax.training.train_state import TrainState
from jax.sharding import Mesh, PartitionSpec

from ssm import Supermask, UserError, learners
from ssm.supermask import module_collections

KEY = jax.random.key(0)
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "flax.md"


class Norm(nn.Module):
    """Convolution, batch statistics, a sown value, a perturbation."""

    @nn.compact
    def __call__(self, x, train: bool = True):
        x = nn.BatchNorm(use_running_average=not train)(nn.Conv(4, (3, 3))(x))
        self.sow("intermediates", "features", x)
        return nn.Dense(3)(self.perturb("pooled", x.mean((1, 2))))


class Twice(nn.Module):
    @nn.compact
    def __call__(self, x):
        shared = nn.Dense(x.shape[-1])
        return shared(jnp.tanh(shared(x)))


class Auto(nn.Module):
    """Several methods and a submodule that they share."""

    def setup(self):
        self.encoder, self.decoder = nn.Dense(4), nn.Dense(6)

    def encode(self, x):
        return jnp.tanh(self.encoder(x))

    def __call__(self, x):
        return self.decoder(self.encode(x))


class OwnFrozen(nn.Module):
    """Has a collection named as the wrapper's."""

    @nn.compact
    def __call__(self, x):
        scale = self.variable("frozen", "scale", lambda: jnp.full(x.shape[-1], 2.0))
        if self.is_mutable_collection("frozen") and not self.is_initializing():
            scale.value = scale.value + 1
        return nn.Dense(3)(x * scale.value)


class Partitioned(nn.Module):
    @nn.compact
    def __call__(self, x):
        init = nn.with_partitioning(nn.initializers.lecun_normal(), ("in", "out"))
        x = nn.with_logical_constraint(nn.Dense(4, kernel_init=init)(x), ("batch", None))
        return nn.Dense(3, kernel_init=nn.with_logical_partitioning(nn.initializers.lecun_normal(), ("in", "out")))(x)


class Step(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return jnp.tanh(nn.Dense(x.shape[-1])(x)), None


class Scanned(nn.Module):
    @nn.compact
    def __call__(self, x):
        stack = nn.scan(Step, variable_axes={"params": 0}, split_rngs={"params": True}, length=2)
        return stack()(x, None)[0]


class Lifted(nn.Module):
    """nn.jit, nn.remat and nn.vmap inside the module."""

    @nn.compact
    def __call__(self, x):
        x = nn.remat(nn.Dense)(5)(nn.jit(nn.Dense)(4)(x))
        many = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None, axis_size=2)
        return many(3)(x)


class Slash(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3, name="a/b")(nn.Dense(4, name="50%/2F")(x))


class SharedScope(nn.Module):
    """Adds a parameter in the scope of the layer that it holds."""

    def setup(self):
        self.base = nn.Dense(3)
        nn.share_scope(self, self.base)

    @nn.compact
    def __call__(self, x):
        return self.base(x) + x @ self.param("kernel_too", nn.initializers.ones, (x.shape[-1], 3))


ROWS = jnp.linspace(-1, 1, 12).reshape(2, 6)
MODULES: dict[str, tuple[nn.Module, Any]] = {
    "Dense": (nn.Dense(3), ROWS),
    "Conv, BatchNorm": (Norm(), jnp.linspace(-1, 1, 50).reshape(2, 5, 5, 1)),
    "Embed": (nn.Embed(7, 3), jnp.arange(4)),
    "attention": (nn.MultiHeadDotProductAttention(2, qkv_features=4), jnp.linspace(-1, 1, 24).reshape(2, 3, 4)),
    "attention, decode": (
        nn.MultiHeadDotProductAttention(2, qkv_features=4, decode=True),
        jnp.linspace(-1, 1, 8).reshape(2, 1, 4),
    ),
    "RNN": (nn.RNN(nn.GRUCell(3)), jnp.linspace(-1, 1, 24).reshape(2, 3, 4)),
    "one layer twice": (Twice(), ROWS),
    "several methods": (Auto(), ROWS),
    "Sequential": (nn.Sequential([nn.Dense(4), nn.relu, nn.Dense(3)]), ROWS),
    "own collection `frozen`": (OwnFrozen(), ROWS),
    "partitioned": (Partitioned(), ROWS),
    "nn.scan inside": (Scanned(), ROWS),
    "nn.jit, remat, vmap inside": (Lifted(), ROWS),
    "names with /": (Slash(), ROWS),
    "nn.share_scope": (SharedScope(), ROWS),
    "NNX by ToLinen": (nnx.bridge.ToLinen(nnx.Linear, args=(6, 3)), ROWS),
}


@dataclass(frozen=True)
class Pair:
    """A module by itself and masked, with variables that mean the same."""

    module: nn.Module
    x: Any
    net: Supermask
    variables: Any

    @property
    def plain(self) -> Any:
        """The variables of the module by itself."""
        return {"params": self.net.weights(self.variables), **module_collections(self.variables)}


def pair(name: str, learner: Any = None) -> Pair:
    module, x = MODULES[name]
    net = Supermask(module, learner=learner or learners.dense(), others="trained")
    return Pair(module, x, net, net.init(KEY, x))


def masked_pair(p: Pair) -> Pair:
    """Return the same module under the paper's learner."""
    net = Supermask(p.module, others="trained")
    return Pair(p.module, p.x, net, net.init(KEY, p.x))


def same(one: Any, other: Any) -> None:
    """Raise AssertionError unless two trees hold the same bits."""
    one, other = meta.unbox(one), meta.unbox(other)
    assert jax.tree.structure(one) == jax.tree.structure(other), (jax.tree.structure(one), jax.tree.structure(other))
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(left, right)


def close(one: Any, other: Any) -> None:
    """Raise AssertionError unless two trees are the same but for rounding."""
    one, other = meta.unbox(one), meta.unbox(other)
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def changed(net: nn.Module, variables: Any, x: Any, **options: Any) -> tuple[Any, Any]:
    """Return the output, and the collections that applying changes, as the module by itself names them."""
    output, collections = net.apply(variables, x, **options)
    if isinstance(net, Supermask):
        collections = module_collections(collections)
    return output, {name: tree for name, tree in collections.items() if tree}


def mutable(filter_: Any, p: Pair) -> None:
    output, collections = changed(p.net, p.variables, p.x, mutable=filter_)
    expected, wanted = changed(p.module, p.plain, p.x, mutable=filter_)
    wanted.pop("params", None)  # the module's would be effective weights
    same((output, collections), (expected, wanted))


def initialised(p: Pair) -> None:
    output, variables = p.net.init_with_output(KEY, p.x)
    same(variables, p.variables)
    assert jnp.shape(output) == jnp.shape(p.module.init_with_output(KEY, p.x)[0])
    # Initialisation leaves caches and averages at their first values.
    fresh = p.module.init(KEY, p.x)
    assert module_collections(variables).keys() == {name for name in fresh if name != "params"}
    shapes = jax.tree.map(jnp.shape, meta.unbox(dict(fresh)["params"]))
    assert jax.tree.map(jnp.shape, p.plain["params"]) == shapes
    for name in fresh.keys() - {"params", "nnx"}:
        same(module_collections(variables)[name], fresh[name])


def abstract(p: Pair) -> None:
    shapes = jax.eval_shape(p.net.init, KEY, p.x)
    assert jax.tree.map(jnp.shape, shapes) == jax.tree.map(jnp.shape, p.variables)
    lazy = p.net.lazy_init(KEY, jax.ShapeDtypeStruct(p.x.shape, p.x.dtype))
    same(lazy, p.variables)


def captured(p: Pair) -> None:
    options = {"capture_intermediates": True, "mutable": ["batch_stats", "cache"]}
    _, found = p.net.apply(p.variables, p.x, **options)
    _, wanted = p.module.apply(p.plain, p.x, **options)
    same(found["intermediates"]["net"], wanted["intermediates"])


def methods(p: Pair) -> None:
    for name in ("encode", "__call__"):
        function = getattr(type(p.module), name)
        wanted = p.module.apply(p.plain, p.x, method=name)
        ways = name, function, getattr(p.net, name), lambda net, x, name=name: getattr(net, name)(x)
        for method in ways:
            same(p.net.apply(p.variables, p.x, method=method), wanted)
        same(getattr(p.net.bind(p.variables), name)(p.x), wanted)
    assert set(p.net.init(KEY, p.x, method="encode")["params"]["net"]) == {"encoder"}


def perturbed(p: Pair) -> None:
    def loss(net, variables, perturbations):
        return net.apply({**variables, "perturbations": perturbations}, p.x, train=False).sum()

    plain = p.plain
    found = jax.grad(partial(loss, p.net, p.variables))(p.variables["perturbations"])
    same(found["net"], jax.grad(partial(loss, p.module, plain))(plain["perturbations"]))
    assert np.abs(np.asarray(found["net"]["pooled"])).sum() > 0


def loss(net: nn.Module, variables: Any, x: Any, params: Any) -> Any:
    output = net.apply({**variables, "params": params}, x, mutable=["batch_stats", "cache"])[0]
    return jnp.sum(jnp.sin(output))


def derivatives(p: Pair) -> None:
    of_net, params = partial(loss, p.net, p.variables, p.x), p.variables["params"]
    of_module, plain = partial(loss, p.module, p.plain, p.x), p.plain["params"]
    same(jax.grad(of_net)(params)["net"], jax.grad(of_module)(plain))
    tangent, one = jax.tree.map(jnp.ones_like, params), jax.tree.map(jnp.ones_like, plain)
    close(jax.jvp(of_net, (params,), (tangent,)), jax.jvp(of_module, (plain,), (one,)))


def masked_derivatives(p: Pair) -> None:
    """The same with masks: forward over reverse, as a hessian is."""
    p = masked_pair(p)
    function, params = partial(loss, p.net, p.variables, p.x), p.variables["params"]
    tangent = jax.tree.map(jnp.ones_like, params)
    gradient, curvature = jax.jvp(jax.grad(function), (params,), (tangent,))
    close(gradient, jax.grad(function)(params))
    _, slope = jax.jvp(function, (params,), (tangent,))
    np.testing.assert_allclose(slope, sum(map(jnp.sum, jax.tree.leaves(gradient))), rtol=1e-3, atol=1e-4)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(curvature))


def jitted(p: Pair) -> None:
    options = {"mutable": ["batch_stats", "cache"]}
    found = jax.jit(partial(p.net.apply, **options))(p.variables, p.x)[0]
    close(found, p.module.apply(p.plain, p.x, **options)[0])


def seeds(p: Pair) -> None:
    """vmap over seeds: a stacked seed is the seed alone."""
    net = Supermask(p.module, others="trained")
    keys = jax.random.split(KEY, 3)
    stacked = jax.vmap(net.init, (0, None))(keys, p.x)
    alone = net.init(keys[1], p.x)
    close(jax.tree.map(lambda leaf: leaf[1], stacked), alone)
    same(jax.tree.map(lambda leaf: leaf[1], net.masks(stacked)), net.masks(alone))


def saved(p: Pair) -> None:
    zeros = jax.tree.map(jnp.zeros_like, p.variables)
    same(serialization.from_bytes(zeros, serialization.to_bytes(p.variables)), p.variables)


def saved_by_orbax(p: Pair) -> None:
    masked = masked_pair(p)
    with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as checkpointer:
        path = Path(folder) / "net"
        checkpointer.save(path, masked.variables)
        checkpointer.wait_until_finished()
        abstract = jax.eval_shape(lambda tree: tree, masked.variables)
        same(checkpointer.restore(path, abstract), masked.variables)


def train_state(p: Pair) -> None:
    def trained(net, variables):
        rest = {name: tree for name, tree in variables.items() if name != "params"}
        state = TrainState.create(apply_fn=net.apply, params=variables["params"], tx=optax.sgd(0.1))
        gradient = jax.grad(lambda params: loss(net, rest, p.x, params))(state.params)
        return state.apply_gradients(grads=gradient).params

    same(trained(p.net, p.variables)["net"], trained(p.module, p.plain))


def wrapped(transform: Callable[..., Any], p: Pair) -> None:
    """A lifted transformation of the wrapper's class."""
    net = transform(Supermask)(p.module, learner=learners.dense(), others="trained")
    close(
        net.apply(p.variables, p.x, mutable=["batch_stats", "cache"]),
        p.net.apply(p.variables, p.x, mutable=["batch_stats", "cache"]),
    )
    assert jax.tree.map(jnp.shape, net.init(KEY, p.x)) == jax.tree.map(jnp.shape, p.variables)


def mapped(p: Pair) -> None:
    """nn.vmap of the wrapper: two nets, side by side in one module."""
    axes = {name: 0 for name in p.variables}
    options = {"in_axes": None, "axis_size": 2, "metadata_params": {nn.PARTITION_NAME: "seed"}}
    net = nn.vmap(Supermask, variable_axes=axes, split_rngs={"params": True}, **options)(p.module, others="trained")
    variables = net.init(KEY, p.x)
    output = net.apply(variables, p.x, mutable=["batch_stats", "cache"])[0]
    one = Supermask(p.module, others="trained")
    for index in range(2):
        own = jax.tree.map(lambda leaf, index=index: leaf[index], variables)
        close(output[index], one.apply(own, p.x, mutable=["batch_stats", "cache"])[0])


def in_parents(p: Pair) -> None:
    class Compact(nn.Module):
        @nn.compact
        def __call__(self, x):
            return Supermask(p.module.clone(), learner=learners.dense(), others="trained", name="masked")(x)

    class Setup(nn.Module):
        def setup(self):
            self.masked = Supermask(p.module.clone(), learner=learners.dense(), others="trained")

        def __call__(self, x):
            return self.masked(x)

    options = {"mutable": ["batch_stats", "cache"]}
    wanted = p.net.apply(p.variables, p.x, **options)[0]
    for parent in (Compact(), Setup()):
        variables = parent.init(KEY, p.x)
        assert set(variables["params"]) == {"masked"}
        inside = {name: {"masked": tree} for name, tree in p.variables.items()}
        same(parent.apply(inside, p.x, **options)[0], wanted)


def partition_specs(p: Pair) -> None:
    specs = nn.get_partition_spec(p.variables)
    wanted = nn.get_partition_spec(p.module.init(KEY, p.x))
    assert specs["params"]["net"] == wanted["params"]
    masked = masked_pair(p)
    specs = nn.get_partition_spec(masked.variables)
    kernel = PartitionSpec("in", "out")
    assert specs["params"]["net"]["Dense_0"]["kernel"] == kernel
    state = specs["frozen"]["layers"]["Dense_0/kernel"]
    assert (state.kernel, state.lower) == (kernel, PartitionSpec())
    devices = np.asarray(jax.devices()[:2])
    mesh = Mesh(devices.reshape(-1, 1), ("in", "out"))
    # Initialised where the kernels belong: the usual way to make a net too large for one device.
    shardings = nn.get_sharding(jax.eval_shape(masked.net.init, KEY, p.x), mesh)
    spread = jax.jit(masked.net.init, out_shardings=shardings)(KEY, p.x)
    close(spread, masked.variables)
    scores = meta.unbox(spread["params"]["net"]["Dense_0"]["kernel"])
    assert scores.sharding.shard_shape(scores.shape) == (6 // len(devices), 4)
    with jax.set_mesh(mesh):
        found = jax.jit(p.net.apply)(p.variables, p.x)
    close(found, p.net.apply(p.variables, p.x))


def to_nnx(p: Pair) -> None:
    masked, options = masked_pair(p), {"mutable": ["batch_stats", "cache"]}
    net = nnx.bridge.ToNNX(masked.net, rngs=nnx.Rngs(0)).lazy_init(p.x, **options)
    shapes = [leaf.shape for leaf in jax.tree.leaves(masked.variables["params"])]
    assert [leaf.shape for leaf in jax.tree.leaves(nnx.state(net, nnx.Param))] == shapes
    graph, state = nnx.split(net)
    output = net(p.x, **options)
    close(nnx.jit(lambda net, x: net(x, **options))(nnx.merge(graph, state), p.x), output)
    assert output.shape == masked.net.apply(masked.variables, p.x, **options)[0].shape
    gradient = nnx.grad(lambda net: jnp.sum(jnp.sin(net(p.x, **options))))(nnx.merge(graph, state))
    assert sum(float(jnp.abs(leaf).sum()) for leaf in jax.tree.leaves(nnx.state(gradient))) > 0


def tabulated(p: Pair) -> None:
    text = p.net.tabulate(KEY, p.x, console_kwargs={"width": 200})
    assert "Supermask" in text


def intercepted(p: Pair) -> None:
    seen = []

    def note(function, args, kwargs, context):
        seen.append((type(context.module).__name__, context.method_name))
        return function(*args, **kwargs)

    def calls(net, variables):
        seen.clear()
        with nn.intercept_methods(note):
            net.apply(variables, p.x, mutable=["batch_stats", "cache"])
        return [call for call in seen if call[0] != "Supermask"]

    assert calls(p.net, p.variables) == calls(p.module, p.plain)


FEATURES: dict[str, Callable[[Pair], None]] = {
    "`init`, `init_with_output`": initialised,
    "`eval_shape`, `lazy_init`": abstract,
    "`mutable=[...]`": partial(mutable, ["batch_stats", "cache", "frozen"]),
    "`mutable=True`": partial(mutable, True),
    "`mutable=DenyList`": partial(mutable, DenyList(("params", "losses"))),
    "`capture_intermediates`": captured,
    "`sow`": partial(mutable, ["intermediates", "batch_stats", "cache"]),
    "`perturb`": perturbed,
    "`method=`, `bind`": methods,
    "`jax.jit`": jitted,
    "`jax.grad`, `jax.jvp`": derivatives,
    "`jvp` of `grad`, with masks": masked_derivatives,
    "`jax.vmap` over seeds": seeds,
    "`TrainState`": train_state,
    "`flax.serialization`": saved,
    "Orbax": saved_by_orbax,
    "`nn.jit(Supermask)`": partial(wrapped, nn.jit),
    "`nn.remat(Supermask)`": partial(wrapped, nn.remat),
    "`nn.vmap(Supermask)`": mapped,
    "in `setup` and compact parents": in_parents,
    "partition specs, a mesh": partition_specs,
    "`nnx.bridge.ToNNX`": to_nnx,
    "`tabulate`": tabulated,
    "`nn.intercept_methods`": intercepted,
}
ONLY = {
    "`perturb`": ("Conv, BatchNorm",),
    "`method=`, `bind`": ("several methods",),
    "partition specs, a mesh": ("partitioned",),
    # Without a mesh, NNX makes no variables with partitioning metadata, of no module.
    "`nnx.bridge.ToNNX`": tuple(name for name in MODULES if name != "partitioned"),
}
"""Features that only some of the modules have."""


def tried(feature: str, name: str) -> str:
    """Return what comes of a feature with a module: works, or nothing where the module doesn't have it."""
    if name not in ONLY.get(feature, MODULES):
        return ""
    FEATURES[feature](pair(name))
    return "works"


def inside_another() -> Any:
    return Supermask(nn.Sequential([Supermask(nn.Dense(3)), nn.Dense(2)])).init(KEY, ROWS)


class Head(nn.Module):
    """Uses a layer that it is given."""

    embed: nn.Module

    @nn.compact
    def __call__(self, x):
        return self.embed.attend(nn.Dense(6)(x))


class Tied(nn.Module):
    """Masks a head that shares the embedding outside."""

    def setup(self):
        self.embed = nn.Embed(11, 6)
        self.head = Supermask(Head(self.embed))

    def __call__(self, tokens):
        return self.head(self.embed(tokens))


def without_frozen() -> Any:
    net = Supermask(nn.Dense(3))
    return net.apply({"params": net.init(KEY, ROWS)["params"]}, ROWS)


def stacked() -> Any:
    net = Supermask(nn.Dense(3))
    return net.apply(jax.vmap(net.init, (0, None))(jax.random.split(KEY, 2), ROWS), ROWS)


REFUSED: dict[str, Callable[[], Any]] = {
    "a Supermask inside a Supermask": inside_another,
    "a module that is shared with others outside": lambda: Tied().init(KEY, jnp.ones((2, 3), jnp.int32)),
    "a module without a kernel": lambda: Supermask(nn.LayerNorm()).init(KEY, ROWS),
    "an NNX module": lambda: Supermask(nnx.Linear(6, 3, rngs=nnx.Rngs(0))),  # type: ignore[arg-type]
    "a class": lambda: Supermask(nn.Dense),  # type: ignore[arg-type]
    "`params` without `frozen`": without_frozen,
    "stacked variables without `jax.vmap`": stacked,
    '`learner="binary"`': lambda: Supermask(nn.Dense(3), learner="binary"),  # type: ignore[arg-type]
    '`others="froze"`': lambda: Supermask(nn.Dense(3), others="froze"),  # type: ignore[arg-type]
    '`kernels="kernel"`': lambda: Supermask(nn.Dense(3), kernels="kernel"),
    '`kernels=("layer/kernel",)`': lambda: Supermask(nn.Dense(3), kernels=("layer/kernel",)).init(KEY, ROWS),
    '`kernel_init="he"`': lambda: Supermask(nn.Dense(3), kernel_init="he"),  # type: ignore[arg-type]
    "`signed(threshold=0.01)`": lambda: learners.signed(threshold=0.01),  # type: ignore[arg-type]
}


def refusal(name: str) -> str:
    """Return the message of what is refused; "" if it isn't."""
    try:
        REFUSED[name]()
    except UserError as error:
        return str(error)
    return ""


def row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def refused_row(name: str) -> str:
    """Return the document's row of what is refused."""
    return row(name, refusal(name))


if __name__ == "__main__":
    print(row("feature", *MODULES), row("---", *("---" for _ in MODULES)), sep="\n")
    for feature in FEATURES:
        print(row(feature, *(tried(feature, name) for name in MODULES)), flush=True)
    print("", row("refused", "message"), row("---", "---"), *map(refused_row, REFUSED), sep="\n")
