"""The wrapper that masks any Flax module: frozen kernels, scores as params."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import jax
from flax import linen as nn
from flax.core import meta
from flax.core.scope import Scope, subtract_filters
from jax import Array

from ssm import initializers, learners, thresholds
from ssm.errors import UserError
from ssm.learners import Learner, Thresholds
from ssm.trees import Path, Tree, flatten, unflatten

OWN = ("params", "frozen")  # collections that the wrapper manages; all others belong to the wrapped module


def effective_weights(learner: Learner, frozen: Tree, params: Tree) -> dict[str, Any]:
    """Return the plain params of the wrapped module: its kernels masked, its other parameters as they are.

    `frozen` and `params` are the two collections of one `Supermask`.  Every operation is elementwise, so frozen
    kernels may also be scalars that broadcast against their scores (see `ssm.training.gauge`).
    """
    kernels, scores = flatten(frozen["net"]), flatten(params.get("net", {}))
    weights = kernels | scores  # parameters without thresholds are used as they are, frozen or trained
    for path, layer in layer_thresholds(frozen).items():
        weights[path] = learner.weight(kernels[path], scores[path], layer)
    return unflatten(weights)


def layer_thresholds(frozen: Tree) -> dict[Path, Thresholds]:
    """Return the thresholds of every masked kernel by its path in the params of the wrapped module."""
    lower, upper = flatten(frozen["lower"]), flatten(frozen["upper"])
    return {path: Thresholds(lower[path], upper[path]) for path in lower}


def masks(learner: Learner, frozen: Tree, params: Tree) -> dict[str, Array]:
    """Return every kernel's mask by its path, such as `Dense_0/kernel`, in the scores' shapes and dtypes."""
    scores = flatten(params["net"])
    return {"/".join(path): learner.mask(scores[path], layer) for path, layer in layer_thresholds(frozen).items()}


def _note_matrices(found: dict[Path, int], function, args, kwargs, context):
    """Note of every DenseGeneral how many leading axes of its kernel are inputs, as it is called."""
    module = context.module
    if isinstance(module, nn.DenseGeneral) and not module.batch_dims:
        found[(*module.path, "kernel")] = len(module.axis) if isinstance(module.axis, Sequence) else 1
    return function(*args, **kwargs)


def _draw(init: Callable[..., Array], inputs: int | None) -> Callable[..., Array]:
    """Return the initialiser that sees a DenseGeneral's kernel as the matrix it is: its fans aren't a convolution's."""
    if inputs is None:
        return init

    def draw(key, shape, dtype):
        matrix = math.prod(shape[:inputs]), math.prod(shape[inputs:])
        return init(key, matrix, dtype).reshape(shape)

    return draw


class Supermask(nn.Module):
    """Masks `module`: its kernels are frozen as initialised, and scores that choose a mask are trained instead.

    Called as `module` is, and returns what it returns.  Variables:

    - `frozen`: `net` (the kernels, and the other parameters where `others="frozen"`), `lower` and `upper`
      (each masked kernel's thresholds, fixed after initialisation);
    - `params`: `net` (each masked kernel's scores, and the other parameters where `others="trained"`);
    - whatever else `module` keeps (batch statistics, caches, sown values) under `net` in its own collection.

    Keys of the names `module` asks for (`dropout`, say) pass through.  A parameter is masked where its name is in
    `kernels`; biases, scales and the like are not.

    Scores and redrawn kernels take their fans from the kernel's shape, a convolution's or a matrix (DenseGeneral and
    attention included); axes that `nn.scan` or `nn.vmap` stack inside `module` count as a convolution's window, so
    wrap such a layer before it is stacked.

    Options: `learner` (`ssm.learners`), `threshold` (a rule of `ssm.thresholds`), `score_init`, `kernel_init` (None
    keeps the kernels that the module draws itself), `kernels`, `others`.
    Raises UserError at initialisation when the module has no parameter to mask.
    """

    module: nn.Module
    learner: Learner = learners.signed
    threshold: Callable[..., tuple[Array, Array]] = thresholds.absolute(0.01)
    score_init: Callable[..., Array] = initializers.uniform(initializers.xavier())
    kernel_init: Callable[..., Array] | None = None
    kernels: tuple[str, ...] = ("kernel", "embedding")
    others: Literal["frozen", "trained"] = "frozen"

    @nn.compact
    def __call__(self, *args, **kwargs):
        module = self.module.clone(parent=None, name=None)
        initialising = not self.has_variable("frozen", "net")
        if initialising:
            self._initialise(module, args, kwargs)
        frozen = {name: self.get_variable("frozen", name) for name in ("net", "lower", "upper")}
        params = {"net": self.get_variable("params", "net", {})}
        variables = {name: tree["net"] for name, tree in self.variables.items() if name not in OWN and "net" in tree}
        mutable = subtract_filters(self._scope().mutable, set(OWN))
        weights = effective_weights(self.learner, frozen, params)
        result = module.apply(variables | {"params": weights}, *args, rngs=self._keys(), mutable=mutable, **kwargs)
        if mutable is False:
            return result
        output, changed = result
        if not initialising:  # initialisation leaves batch statistics and caches at their first values
            for name, tree in changed.items():
                self.put_variable(name, "net", tree)
        return output

    def weights(self, variables: Tree) -> dict[str, Any]:
        """Return plain params for the wrapped module, with which it computes the masked net's output."""
        return effective_weights(self.learner, variables["frozen"], variables["params"])

    def masks(self, variables: Tree) -> dict[str, Array]:
        """Return every kernel's mask by its path, such as `Dense_0/kernel`."""
        return masks(self.learner, variables["frozen"], variables["params"])

    def _scope(self) -> Scope:
        assert self.scope is not None  # Flax binds a module before it calls it
        return self.scope

    def _keys(self) -> dict[str, Array]:
        return {name: self.make_rng(name) for name in self._scope().rngs}

    def _initialise(self, module: nn.Module, args, kwargs) -> None:
        if not self.is_mutable_collection("frozen"):
            raise UserError(
                f"a Supermask of {type(module).__name__} was applied without its `frozen` collection: pass all the "
                "variables that `init` returned, not `params` alone."
            )
        matrices: dict[Path, int] = {}
        with nn.intercept_methods(partial(_note_matrices, matrices)):
            variables = dict(module.init(self._keys(), *args, **kwargs))
        found = flatten(meta.unbox(variables.pop("params", {})))
        chosen = [path for path in sorted(found) if path[-1] in self.kernels]
        if not chosen:
            names = ", ".join(sorted({path[-1] for path in found})) or "none"
            raise UserError(
                f"{type(module).__name__} has no parameter to mask: wanted one named "
                f"{' or '.join(self.kernels)}, found {names}.  Name them in `kernels`."
            )
        kernel_key, score_key = self.make_rng("params"), self.make_rng("params")
        scores, lower, upper = {}, {}, {}
        for index, path in enumerate(chosen):
            if self.kernel_init is not None:
                key = jax.random.fold_in(kernel_key, index)
                found[path] = _draw(self.kernel_init, matrices.get(path))(key, found[path].shape, found[path].dtype)
            key = jax.random.fold_in(score_key, index)
            scores[path] = self.learner.scores(key, found[path], _draw(self.score_init, matrices.get(path)))
            lower[path], upper[path] = self.threshold(scores[path])
        rest = {path: found.pop(path) for path in list(found) if path not in scores}
        frozen, trained = (found | rest, scores) if self.others == "frozen" else (found, scores | rest)
        for name, tree in (("net", frozen), ("lower", lower), ("upper", upper)):
            self.put_variable("frozen", name, unflatten(tree))
        self.put_variable("params", "net", unflatten(trained))
        for name, tree in variables.items():
            self.put_variable(name, "net", tree)
