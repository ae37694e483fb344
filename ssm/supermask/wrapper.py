"""The wrapper that masks any Flax module: what a learner keeps is frozen, what it trains are the params."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import jax
from flax import linen as nn
from flax.core import meta
from flax.core.scope import Scope, subtract_filters
from jax import Array

from ssm.errors import UserError
from ssm.learners import Layers, Learner, signed
from ssm.supermask.variables import OWN, joined, split
from ssm.trees import Path, Tree, flatten, unflatten


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

    - `params`: `net`, nested as the module's own params: what the learner trains of each masked kernel (its scores,
      say) in its place, and the other parameters where `others="trained"`;
    - `frozen`: `layers`, the learner's state by the path of each masked kernel: frozen kernels and thresholds
      (`frozen["layers"]["Dense_0/kernel"].kernel`), say; and `net`, the other parameters where `others="frozen"`;
    - whatever else `module` keeps (batch statistics, caches, sown values) under `net` in its own collection.

    Keys of the names `module` asks for (`dropout`, say) pass through; a key named `mask` is what a stochastic learner
    draws from, and without it the net is evaluated.  A parameter is masked where its name is in `kernels`; biases,
    scales and the like are not.

    Learners draw from a kernel's shape, a convolution's or a matrix (DenseGeneral and attention included); axes that
    `nn.scan` or `nn.vmap` stack inside `module` count as a convolution's window, so wrap such a layer before it is
    stacked.

    Options: `learner` (`ssm.learners`), `kernel_init` (None keeps the kernels that the module draws itself), `kernels`,
    `others`.  Raises UserError for what is no learner, and at initialisation when the module has no parameter to mask.
    """

    module: nn.Module
    learner: Learner = signed()
    kernel_init: Callable[..., Array] | None = None
    kernels: tuple[str, ...] = ("kernel", "embedding")
    others: Literal["frozen", "trained"] = "frozen"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.learner, Learner):
            raise UserError(f"learner must be made by a factory, ssm.learners.signed() say; got {self.learner!r}.")

    @nn.compact
    def __call__(self, *args, **kwargs):
        module = self.module.clone(parent=None, name=None)
        initialising = not self.has_variable("frozen", "layers")
        if initialising:
            self._initialise(module, args, kwargs)
        own = {name: {key: self.get_variable(name, key, {}) for key in ("net", "layers")} for name in OWN}
        variables = {name: tree["net"] for name, tree in self.variables.items() if name not in OWN and "net" in tree}
        mutable = subtract_filters(self._scope().mutable, set(OWN))
        key = self.make_rng("mask") if self.has_rng("mask") else None
        weights = self.weights(own, key)
        result = module.apply(variables | {"params": weights}, *args, rngs=self._keys(), mutable=mutable, **kwargs)
        if mutable is False:
            return result
        output, changed = result
        if not initialising:  # initialisation leaves batch statistics and caches at their first values
            for name, tree in changed.items():
                self.put_variable(name, "net", tree)
        return output

    def weights(self, variables: Tree, key: Array | None = None) -> dict[str, Any]:
        """Return plain params for the wrapped module, with which it computes the masked net's output.

        key: what a stochastic learner draws from; None is evaluation.
        """
        params, trained, state, frozen = split(variables)
        return joined(self.learner.weights(params, state, key), frozen, trained)

    def masks(self, variables: Tree) -> dict[str, Array]:
        """Return every kernel's mask by its path, such as `Dense_0/kernel`."""
        params, _, state, _ = split(variables)
        return dict(self.learner.masks(params, state))

    def _scope(self) -> Scope:
        assert self.scope is not None  # Flax binds a module before it calls it
        return self.scope

    def _keys(self) -> dict[str, Array]:
        return {name: self.make_rng(name) for name in self._scope().rngs if name != "mask"}

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
        kernel_key, learner_key = self.make_rng("params"), self.make_rng("params")
        for index, path in enumerate(chosen):
            if self.kernel_init is not None:
                key = jax.random.fold_in(kernel_key, index)
                found[path] = _draw(self.kernel_init, matrices.get(path))(key, found[path].shape, found[path].dtype)
        kernels = {path: found.pop(path) for path in chosen}
        # Draws want a DenseGeneral's fans; a rule of rows or columns must see one shape in all of its functions.
        matrices = matrices if self.learner.elementwise else {}
        params, state = self.learner.init(learner_key, _as_matrices(kernels, matrices))
        _check(self.learner, kernels, params, state)
        trained = {} if self.others == "frozen" else found
        frozen = {} if self.others == "trained" else found
        shapes = {"/".join(path): (_matrix(kernels[path], matrices.get(path)), kernels[path].shape) for path in kernels}
        self.put_variable("frozen", "layers", _as_kernels(state, shapes))
        self.put_variable("frozen", "net", unflatten(frozen))
        self.put_variable("params", "net", joined(_as_kernels(params, shapes), unflatten(trained)))
        for name, tree in variables.items():
            self.put_variable(name, "net", tree)


def _matrix(kernel: Array, inputs: int | None) -> tuple[int, ...]:
    """Return the shape in which a learner is given a kernel: that of a matrix, where it is a DenseGeneral's."""
    if inputs is None:
        return kernel.shape
    return math.prod(kernel.shape[:inputs]), math.prod(kernel.shape[inputs:])


def _as_matrices(kernels: Mapping[Path, Array], matrices: Mapping[Path, int]) -> dict[str, Array]:
    return {"/".join(path): kernel.reshape(_matrix(kernel, matrices.get(path))) for path, kernel in kernels.items()}


def _as_kernels(layers: Layers, shapes: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]) -> dict[str, Any]:
    """Return values by layer with the kernel's own shape where they have that of its matrix."""

    def reshaped(path: str) -> Any:
        matrix, own = shapes[path]
        return jax.tree.map(lambda leaf: leaf.reshape(own) if leaf.shape == matrix else leaf, layers[path])

    return {path: reshaped(path) for path in layers}


def _check(learner: Learner, kernels: Mapping[Path, Array], params: Layers, state: Layers) -> None:
    """Raise UserError unless a learner's params and state are by layer."""
    wanted = {"/".join(path) for path in kernels}
    for name, layers in (("params", params), ("state", state)):
        if not isinstance(layers, Mapping) or set(layers) != wanted:
            raise UserError(
                f"the learner's init must return params and state as dictionaries with an entry for each layer "
                f"({', '.join(sorted(wanted))}); its {name} are {_keys_of(layers)}."
            )


def _keys_of(layers: Any) -> str:
    return ", ".join(map(str, layers)) if isinstance(layers, Mapping) else f"of type {type(layers).__name__}"
