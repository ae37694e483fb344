"""Outputs of layers drawn from the normal distribution that random weights come to: local reparameterisation.

Source: Kingma, Salimans and Welling 2015; Shayer, Levi and Fetaya 2018 (LR-Net).
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array, lax

from ssm.errors import UserError
from ssm.ops.epilogue import IDENTITY

FLOOR = 1e-3
"""Added to the variance of an output, as LR-Net's program does."""


def noisy(variances: Mapping[str, Array], key: Array) -> AbstractContextManager[Any]:
    """Return a context in which layers of some kernels draw their outputs: N(x * kernel, x^2 * variance + 0.001).

    variances: by the kernel's path, `Dense_0/kernel`, of its shape; without any, nothing changes, nor for a layer whose
    variances are all 0.  Of `nn.Dense` and `nn.Conv`: UserError, as the context is left, for a variance that no such
    layer took.
    """
    if not variances:
        return nullcontext()
    return _Noisy(variances, key)


def drawn_output(
    product: Callable[..., Array],
    variance: Array,
    normal: Callable[[tuple[int, ...], Any], Array],
    lhs: Array,
    rhs: Array,
    *args: Any,
    **options: Any,
) -> Array:
    """Return a product or convolution of `lhs` and random weights, of mean `rhs`, drawn; an `epilogue` comes after.

    normal: draws from the normal distribution, given shape and dtype.
    """
    if "epilogue" in getattr(product, "keywords", {}):
        epilogue = product.keywords["epilogue"]  # type: ignore[attr-defined]
        options["epilogue"] = IDENTITY
    else:
        epilogue = IDENTITY
    mean = product(lhs, rhs, *args, **options)
    sigma = jnp.sqrt(product(lhs * lhs, variance, *args, **options) + FLOOR)
    noise = jnp.where(jnp.any(variance != 0), sigma, 0) * normal(mean.shape, mean.dtype)
    return epilogue.function(mean + noise)


class _Noisy(AbstractContextManager[None]):
    def __init__(self, variances: Mapping[str, Array], key: Array):
        self.variances, self.left = variances, set(variances)
        self.keys = {path: jax.random.fold_in(key, number) for number, path in enumerate(sorted(variances))}
        self.context = nn.intercept_methods(self._call)
        self.inside = False  # a layer that draws: its product is called by a clone of it, which is called as it is

    def __enter__(self) -> None:
        self.context.__enter__()

    def __exit__(self, kind: Any, *more: Any) -> None:
        self.context.__exit__(kind, *more)
        if kind is None and self.left:
            raise UserError(
                f"{', '.join(sorted(self.left))}: this learner draws the outputs of nn.Dense and nn.Conv, and this is "
                "neither; name in `kernels` the layers that are masked."
            )

    def _call(self, function: Callable[..., Any], args: Any, kwargs: Any, context: Any) -> Any:
        module, path = context.module, "/".join((*context.module.path, "kernel"))
        if self.inside or path not in self.variances or context.method_name != "__call__":
            return function(*args, **kwargs)
        if isinstance(module, nn.Dense):
            name, product = "dot_general", module.dot_general or lax.dot_general
        elif isinstance(module, nn.Conv):
            name, product = "conv_general_dilated", module.conv_general_dilated or lax.conv_general_dilated
        else:
            return function(*args, **kwargs)
        self.left.discard(path)
        normal = partial(jax.random.normal, self.keys[path])
        drawing: dict[str, Any] = {name: partial(drawn_output, product, self.variances[path], normal)}
        plain = module.clone(parent=None, name=None, **drawing)
        self.inside = True
        try:
            return plain.apply({"params": module.variables["params"]}, *args, **kwargs)
        finally:
            self.inside = False
