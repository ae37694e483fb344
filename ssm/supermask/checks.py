"""What a Supermask refuses, with what to do instead."""

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import jax
from flax import linen as nn

from ssm.errors import UserError, require_function
from ssm.learners import Learner


def options(module: Any, learner: Any, kernel_init: Any, kernels: Any, others: Any, allowed: tuple[str, ...]) -> None:
    """Raise UserError for a field of another kind than a Supermask takes."""
    if inspect.isclass(module):
        raise UserError(f"module must be an instance, {module.__name__}(...); got the class {module.__name__}.")
    nnx = any(base.__module__.startswith("flax.nnx") for base in type(module).__mro__)
    if nnx and not isinstance(module, nn.Module):
        raise UserError(
            f"module must be a module of flax.linen, and {type(module).__name__} is one of NNX: mask "
            f"flax.nnx.bridge.ToLinen({type(module).__name__}, args=(...))."
        )
    if not isinstance(module, nn.Module):
        raise UserError(f"module must be a module of flax.linen, nn.Dense(10) say; got {module!r}.")
    if not isinstance(learner, Learner):
        raise UserError(f"learner must be made by a factory, ssm.learners.signed() say; got {learner!r}.")
    arguments = {"init": 2, "weights": 3, "masks": 2}
    optional = {"update": 3, "finish": 4, "penalty": 2, "variances": 2, "draw": 3}
    arguments |= {name: number for name, number in optional.items() if getattr(learner, name)}
    for name, number in arguments.items():
        require_function(getattr(learner, name), f"the learner's {name}", "that of ssm.learners.signed()", number)
    if kernel_init is not None:
        require_function(kernel_init, "kernel_init", "ssm.initializers.signed_constant(ssm.initializers.he())", 3)
    if not callable(kernels) and not (
        isinstance(kernels, list | tuple) and all(isinstance(pattern, str) for pattern in kernels)
    ):
        raise UserError(
            "kernels must be a tuple of patterns, ('kernel',) or ('encoder/*/kernel',) say, or a function of a path; "
            f"got {kernels!r}."
        )
    if others not in allowed:
        raise UserError(f"others must be {' or '.join(map(repr, allowed))}; got {others!r}.")


def shared(module: nn.Module) -> None:
    """Raise UserError where a module, or one inside it, is used outside its Supermask, too.

    A Supermask has variables of its own, so that the parameters would be copied, and no longer be tied.
    """
    for inner in _modules(module):
        scope = inner.scope
        if scope is None or not any(scope.variables().values()):
            continue
        raise UserError(
            f"{'/'.join(inner.path)} is used outside the Supermask, too, which would train a copy of its parameters "
            "that is no longer tied to it: mask the module that holds both, or give the Supermask a module of its own."
        )


def _modules(value: Any) -> Iterator[nn.Module]:
    """Yield the modules in a module's fields, itself first."""
    for leaf in jax.tree.leaves(value, is_leaf=lambda node: isinstance(node, nn.Module)):
        if isinstance(leaf, nn.Module):
            yield leaf
            for field in dataclasses.fields(leaf):
                if field.name not in ("parent", "name"):
                    yield from _modules(getattr(leaf, field.name, None))
