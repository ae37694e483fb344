"""The learner protocol: pure functions that say what is trained, and which weights and masks that means.

A learner is made by a factory, as an optimiser of optax is: `signed(threshold=absolute(0.02))`.  The wrapper
(`ssm.Supermask`) and the trainer know nothing else of a method, so a method of one's own is one such factory.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
from jax import Array
from jaxtyping import Float, Int, Key

from ssm.errors import require_function
from ssm.initializers import Initializer, uniform, xavier
from ssm.thresholds import absolute

Layers: TypeAlias = Mapping[str, Any]
"""A value for each masked layer, by the path of its kernel: `Dense_0/kernel`."""


SCORES: Initializer = uniform(xavier())
"""The paper's distribution of the scores at initialisation."""
THRESHOLD = absolute(0.01)
"""The paper's thresholds, -0.01 and 0.01."""


def check_rules(scores: Any, threshold: Any) -> None:
    """Raise UserError unless a learner's scores and thresholds are made by functions."""
    require_function(scores, "scores", "ssm.initializers.uniform(ssm.initializers.xavier())", 3)
    require_function(threshold, "threshold", "ssm.thresholds.absolute(0.01)", 1)


class Step(NamedTuple):
    """What `Learner.update` and `Learner.finish` may change, before and after the optimiser.

    grads, params, state: by layer.  opt: the optimiser's state; where it holds something for each parameter (momentum,
    say), it holds it by layer, too.
    """

    grads: Layers
    params: Layers
    state: Layers
    opt: Any


class Learner(NamedTuple):
    """How masks are learned: what is trained of each layer, and the weights and masks that it stands for.

    All functions are pure, see all masked layers at once, and return mappings by layer.

    init: (key, kernels) -> (params, state).  `kernels` are the layers' weights as the module initialises them; a
        kernel with several input or output axes (`nn.DenseGeneral`) comes to an elementwise learner as the matrix that
        it is, so that draws know its fans, and to any other in its own shape, as in all other functions.  `params` are
        trained, `state` is not: frozen kernels, thresholds, masks, and whatever else the method needs.  A layer's
        params and state are any pytrees.
    weights: (params, state, key) -> effective kernels, differentiable in `params`.  The key is the training step's, and
        None in evaluation: a stochastic method then takes its expectation or mode.
    masks: (params, state) -> masks, of the kernels' shapes and float dtype: 0 hides a weight.
    update: (key, step, Step) -> Step, between gradient and optimiser, or None.  `step` counts from 0.
    finish: (key, step, before, after) -> Step, after the optimiser, or None.  `before` is the Step that the optimiser
        was given, `after` the same with what it made of params and opt; to return those of `before` undoes its step.
    penalty: (params, state) -> scalar that is added to the loss, or None.
    variances: (params, state) -> variances of the weights by layer, or None.  With them, training draws each masked
        layer's outputs (of `nn.Dense` and `nn.Conv`) from a normal distribution whose mean the weights give, instead of
        drawing weights (local reparameterisation; `ssm.supermask.reparameterisation`).
    draw: (params, state, key) -> weights drawn for a test, or None.  Evaluation is then the mean over `draws` of them.
    settled: (params, state, reach) -> bool by layer, whether a weight is hidden and stays so without a gradient; None
        where masks may come back without one.  `reach`, of the params' shapes, bounds how far they still move by
        themselves, apart from decay towards 0.  The arrays of such a learner have the kernel's shape, or are scalars.
    elementwise: whether `weights` and `masks` act on each weight by itself, whatever its place in the kernel.  Only
        then may the trainer hold matrices transposed, which is faster on a CPU.
    has_masks: whether its masks say anything; False where every weight is kept and trained.
    """

    init: Callable[[Key[Array, ""], Mapping[str, Array]], tuple[Layers, Layers]]
    weights: Callable[[Layers, Layers, Key[Array, ""] | None], Mapping[str, Array]]
    masks: Callable[[Layers, Layers], Mapping[str, Array]]
    update: Callable[[Key[Array, ""], Int[Array, ""], Step], Step] | None = None
    finish: Callable[[Key[Array, ""], Int[Array, ""], Step, Step], Step] | None = None
    penalty: Callable[[Layers, Layers], Float[Array, ""]] | None = None
    variances: Callable[[Layers, Layers], Mapping[str, Array]] | None = None
    draw: Callable[[Layers, Layers, Key[Array, ""]], Mapping[str, Array]] | None = None
    draws: int = 10
    settled: Callable[[Layers, Layers, Layers], Mapping[str, Array]] | None = None
    elementwise: bool = False
    has_masks: bool = True


def changes_state(learner: Learner) -> bool:
    """Return whether a learner's state changes as it is trained."""
    return learner.update is not None or learner.finish is not None


def may_be_transposed(learner: Learner) -> bool:
    """Return whether a learner computes the same of transposed matrices; an update may draw by their shape."""
    return learner.elementwise and not changes_state(learner)


def is_by_layer(layers: Layers) -> Callable[[Any], bool]:
    """Return a function that says whether a part of a tree is a dictionary with a value for each of the same layers."""
    return lambda node: isinstance(node, Mapping) and node.keys() == layers.keys()


def map_by_layer(function: Callable[..., Any], tree: Any, *layers: Layers) -> Any:
    """Return an optimiser's state in which a function of each layer's value, and of those of `layers`, replaces it.

    tree: `Step.opt`, whose dictionaries by layer hold momentum, say.
    """
    own = is_by_layer(layers[0])

    def mapped(node):
        return {path: function(node[path], *(one[path] for one in layers)) for path in node} if own(node) else node

    return jax.tree.map(mapped, tree, is_leaf=own)


def each(layers: Layers, key: Key[Array, ""], function: Callable[[str, Array], Any]) -> dict[str, Any]:
    """Return what a function of a layer's path and of a key of its own makes of each layer."""
    return {path: function(path, jax.random.fold_in(key, number)) for number, path in enumerate(in_order(layers))}


def layerwise(
    init: Callable[[Array, Array], tuple[Any, Any]],
    weight: Callable[[Any, Any, Array | None], Array],
    mask: Callable[[Any, Any], Array],
    *,
    settled: Callable[[Any, Any, Any], Array] | None = None,
    **more: Any,
) -> Learner:
    """Return the learner that treats each layer by itself.

    init: (key, kernel) -> (params, state).  weight: (params, state, key or None) -> effective kernel.
    mask: (params, state) -> mask.  settled: (params, state, reach) -> bool, or None.
    more: the other fields of `Learner`; `update` and `penalty` see all layers.
    Raises UserError for what are no such functions.
    """
    for name, function, arguments in (("init", init, 2), ("weight", weight, 3), ("mask", mask, 2)):
        require_function(function, name, "that of ssm.learners.signed", arguments)

    def init_layers(key, kernels):
        both = each(kernels, key, lambda path, own: init(own, kernels[path]))
        return {path: one[0] for path, one in both.items()}, {path: one[1] for path, one in both.items()}

    def weights(params, state, key):
        numbered = enumerate(in_order(params))
        return {path: weight(params[path], state[path], _of_layer(key, number)) for number, path in numbered}

    def masks(params, state):
        return {path: mask(params[path], state[path]) for path in in_order(params)}

    def settled_layers(params, state, reach):
        assert settled is not None
        return {path: settled(params[path], state[path], reach[path]) for path in in_order(params)}

    return Learner(init_layers, weights, masks, settled=settled and settled_layers, **more)


def in_order(layers: Layers) -> list[str]:
    """Return the layers' paths in the order in which they are numbered, name by name."""
    return sorted(layers, key=lambda path: path.split("/"))


def _of_layer(key: Array | None, number: int) -> Array | None:
    return None if key is None else jax.random.fold_in(key, number)
