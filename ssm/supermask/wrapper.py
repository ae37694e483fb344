"""The wrapper that masks any Flax module: what a learner keeps is frozen, what it trains are the params."""

import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any, Literal, TypeAlias, get_args

from flax import core
from flax import linen as nn
from flax.core.scope import Scope, subtract_filters
from jax import Array

from ssm.errors import UserError
from ssm.learners import Learner, signed
from ssm.supermask import checks
from ssm.supermask.initialisation import Kernels, begin, chosen, drawn
from ssm.supermask.variables import (
    assembled,
    check_keys,
    check_single,
    joined,
    module_collections,
    over_axes,
    split,
    stacked_axes,
)
from ssm.trees import Tree

Others: TypeAlias = Literal["frozen", "trained"]


class Supermask(nn.Module):
    """Masks `module`: its kernels are frozen as initialised, and scores that choose a mask are trained instead.

    Called as `module` is, and returns what it returns; the other methods of `module` are methods of this one, too
    (docs/flax.md lists what of Flax works, and what is refused).  Variables:

    - `params`: `net`, nested as the module's own params: what the learner trains of each masked kernel (its scores,
      say) in its place, and the other parameters where `others="trained"`;
    - `frozen`: `layers`, the learner's state by the path of each masked kernel: frozen kernels and thresholds
      (`frozen["layers"]["Dense_0/kernel"].kernel`), say; `net`, the other parameters where `others="frozen"`; `own`,
      the module's own collection of this name, if it has one; `axes`, a zero whose shape says what `jax.vmap` stacked;
    - whatever else `module` keeps (batch statistics, caches, sown values) under `net` in its own collection.

    Keys of the names `module` asks for (`dropout`, say) pass through; a key named `mask` is what a stochastic learner
    draws from, and without it the net is evaluated.

    Learners draw from a kernel's shape, a convolution's or a matrix (DenseGeneral and attention included); axes that
    `nn.scan` or `nn.vmap` stack inside `module` count as a convolution's window, so wrap such a layer before it is
    stacked.

    Options:

    - `learner`: how masks are learned (`ssm.learners`).
    - `kernel_init`: draws the kernels; None keeps those that the module draws itself.
    - `kernels`: which parameters are masked: patterns (`fnmatch`) of a parameter's name, `kernel`, or its whole path,
      `encoder/*/kernel`; or a function from the path to whether it is masked.
    - `others`: whether the other parameters (biases, scales and the like) are `frozen` or `trained`.

    Raises UserError for options of another kind and, at initialisation, when the module has no parameter to mask.
    """

    module: nn.Module
    learner: Learner = signed()
    kernel_init: Callable[..., Array] | None = None
    kernels: Kernels = ("kernel", "embedding")
    others: Others = "frozen"

    def __post_init__(self) -> None:
        checks.options(self.module, self.learner, self.kernel_init, self.kernels, self.others, get_args(Others))
        if isinstance(self.kernels, list):
            self.kernels = tuple(self.kernels)  # a module's fields must be hashable
        super().__post_init__()

    def __call__(self, *args, **kwargs):
        return self._run("__call__", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return the module's method of this name, run on the masked net."""
        if name.startswith("_") or not callable(getattr(vars(self).get("module"), name, None)):
            return super().__getattr__(name)
        return self._forwarded(name)

    @nn.nowrap
    def _forwarded(self, name: str) -> MethodType:
        def forwarded(self, *args, **kwargs):
            return self._run(name, args, kwargs)

        return MethodType(forwarded, self)

    @nn.nowrap
    def apply(self, variables, *args, method: Any = None, **options):
        """Apply as `flax.linen.Module.apply`; `method` is also a function of the module's class."""
        return super().apply(variables, *args, method=self._own(method), **options)

    @nn.nowrap
    def init_with_output(self, rngs, *args, method: Any = None, **options):
        """Initialise as `flax.linen.Module.init_with_output`; `method` is also a function of the module's class."""
        return super().init_with_output(rngs, *args, method=self._own(method), **options)

    @nn.nowrap
    def weights(self, variables: Tree, key: Array | None = None) -> dict[str, Any]:
        """Return plain params for the wrapped module, with which it computes the masked net's output.

        variables: one seed's, or those of several that `jax.vmap` stacked; the weights are then stacked alike.
        key: what a stochastic learner draws from, for stacked seeds one each; None is evaluation.
        Raises UserError for what are no variables of a Supermask.
        """
        params, trained, state, frozen = split(variables)
        axes = stacked_axes(variables)
        check_keys(key, axes)
        return joined(over_axes(self.learner.weights, axes)(params, state, key), frozen, trained)

    @nn.nowrap
    def masks(self, variables: Tree) -> dict[str, Array]:
        """Return every kernel's mask by its path, such as `Dense_0/kernel`; stacked as in `weights`."""
        params, _, state, _ = split(variables)
        return dict(over_axes(self.learner.masks, stacked_axes(variables))(params, state))

    @nn.nowrap
    def _register_submodules(self, name: str, val: Any) -> None:
        """Do nothing: Flax would make `module` a submodule, which has a scope and parameters of its own."""

    @nn.nowrap
    def _own(self, method: Any) -> Any:
        """Return this module's method in place of the wrapped module's function of the same name."""
        name = getattr(method, "__name__", "")
        if not inspect.isfunction(method) or getattr(type(self.module), name, None) is not method:
            return method
        return self.__call__ if name == "__call__" else self._forwarded(name)

    @nn.nowrap
    def _run(self, method: str, args, kwargs):
        """Return what a method of the module returns with the masked weights, and keep what it changed."""
        scope = self.scope
        assert scope is not None  # Flax binds a module before it calls it
        checks.shared(self.module)
        module = self.module.clone(parent=None, name=None)
        if not self.has_variable("frozen", "layers"):
            self._initialise(module, method, args, kwargs)
        variables = self.variables
        check_single(
            variables,
            ": use jax.vmap(model.apply, (0, None)), or take one seed's, jax.tree.map(lambda leaf: leaf[0], variables)",
        )
        key = self.make_rng("mask") if self.has_rng("mask") else None
        inside = {**module_collections(variables), "params": self.weights(variables, key)}
        mutable = subtract_filters(scope.mutable, {"params"})

        def run(inner: Scope):
            return getattr(module.clone(parent=inner, _deep_clone=True), method)(*args, **kwargs)

        # Not the module's own `apply`: it would end the caller's capture_intermediates, and an initialisation.
        flags = {"initializing": True} if self.is_initializing() else {}
        result = core.apply(run, mutable=mutable, flags=flags)(inside, rngs=self._keys())
        if mutable is False:
            return result
        output, changed = result
        for name, tree in changed.items():
            if tree:
                self.put_variable(name, "own" if name == "frozen" else "net", tree)
        return output

    @nn.nowrap
    def _keys(self) -> dict[str, Array]:
        assert self.scope is not None
        return {name: self.make_rng(name) for name in self.scope.rngs if name != "mask"}

    @nn.nowrap
    def _initialise(self, module: nn.Module, method: str, args, kwargs) -> None:
        if not self.is_mutable_collection("frozen"):
            raise UserError(
                f"a Supermask of {type(module).__name__} was applied without its `frozen` collection: pass all the "
                "variables that `init` returned, not `params` alone."
            )
        params, matrices = drawn(module, Supermask, self._keys(), method, args, kwargs)
        masked = chosen(list(params), self.kernels, type(module).__name__)
        layers, state, others = begin(
            params,
            matrices,
            masked,
            learner=self.learner,
            kernel_init=self.kernel_init,
            kernel_key=self.make_rng("params"),
            learner_key=self.make_rng("params"),
        )
        trained, frozen = ({}, others) if self.others == "frozen" else (others, {})
        begun = assembled(layers, trained, state, frozen, {})
        for name in ("params", "frozen"):
            for key, tree in begun[name].items():
                self.put_variable(name, key, tree)
