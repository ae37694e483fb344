"""Threshold rules: thresholds computed once from a layer's initial scores and then fixed.

A rule is a small frozen dataclass that is called like a function: `lower, upper = absolute(0.01)(scores)`.
It is hashable, prints as the text that `parse` reads, and its parameter may be a traced value.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ssm.errors import UserError, require

Pair = tuple[Float[Array, ""], Float[Array, ""]]
"""(lower, upper): scalars of the scores' dtype."""


@dataclass(frozen=True)
class absolute:
    """Return (-tau, tau), whatever the scores.

    `scores` has any shape and float dtype; tau is in the unit of the scores.  Raises `UserError` for a tau
    that is negative or not finite.  Source: the paper's FCN and Conv nets, tau = 0.01.
    """

    tau: Any = 0.01

    def __post_init__(self):
        require(self.tau, "threshold tau", "at least 0 and finite", lambda value: 0 <= value < math.inf)

    def __call__(self, scores: Float[Array, "..."]) -> Pair:
        """Return (lower, upper) for one layer's scores."""
        tau = jnp.asarray(self.tau, scores.dtype)
        return -tau, tau

    def __str__(self):
        return f"absolute:{self.tau}"


@dataclass(frozen=True)
class fraction_of_max:
    """Return -+ p * max |score| of the layer.

    `scores` has any shape and float dtype; a NaN among them makes both thresholds NaN.  Raises `UserError`
    for a p outside [0, 1].  Source: the authors' released program (p = 0.4; ResNet20 0.75, ResNet56 0.8).
    """

    p: Any

    def __post_init__(self):
        require(self.p, "threshold p", "in [0, 1]", lambda value: 0 <= value <= 1)

    def __call__(self, scores: Float[Array, "..."]) -> Pair:
        """Return (lower, upper) for one layer's scores."""
        tau = jnp.asarray(self.p, scores.dtype) * jnp.max(jnp.abs(scores))
        return -tau, tau

    def __str__(self):
        return f"fraction_of_max:{self.p}"


@dataclass(frozen=True)
class quantile:
    """Return the thresholds that keep a given share of the layer, half of it at each end.

    For distinct scores `ternarize` keeps k of n: density * n rounded, but at least 1, so that no layer starts
    dead; k // 2 at the lower end, the rest at the upper.  With `one_sided`, lower is -inf and `binarize`
    keeps the k largest.  `scores` has any shape and float dtype; NaN scores sort above all others.  Raises
    `UserError` for a density outside (0, 1].
    """

    density: Any
    one_sided: bool = field(default=False, kw_only=True)

    def __post_init__(self):
        require(self.density, "threshold density", "in (0, 1]", lambda value: 0 < value <= 1)

    def __call__(self, scores: Float[Array, "..."]) -> Pair:
        """Return (lower, upper) for one layer's scores."""
        # Thresholds are scores themselves: an interpolated quantile is off by up to two elements, and by more
        # once it is rounded to a narrow dtype.
        ordered = jnp.sort(scores, axis=None)
        n = ordered.size
        kept = self.density * n
        kept = round(float(kept)) if isinstance(kept, Real) else jnp.round(kept).astype(jnp.int32)
        kept = jnp.clip(kept, 1, n)
        if self.one_sided:
            # `binarize` is strict, so its threshold is the largest hidden score.
            return jnp.asarray(-jnp.inf, scores.dtype), _at(ordered, n - kept - 1)
        below = kept // 2
        return _at(ordered, below - 1), ordered[n - kept + below]

    def __str__(self):
        return f"quantile:{self.density}"


Rule = absolute | fraction_of_max | quantile


def parameter(rule: Rule) -> Any:
    """Return a rule's only number: tau, p or the density."""
    return getattr(rule, fields(rule)[0].name)


def with_parameter(rule: Rule, value: Any) -> Rule:
    """Return the same rule with another number, which may be traced."""
    return replace(rule, **{fields(rule)[0].name: value})


RULES: dict[str, Callable[[float], Rule]] = {
    "absolute": absolute,
    "fraction_of_max": fraction_of_max,
    "quantile": quantile,
}


def parse(text: str, *, one_sided: bool = False) -> Rule:
    """Return the rule that a text names: 'absolute:0.01' or '0.01', 'fraction_of_max:0.4', 'quantile:0.25'.

    `one_sided` is passed to `quantile`, for binary masks.  Raises `UserError` with these forms for any other
    text, and as the rule does for a value out of range.
    """
    name, colon, number = text.partition(":")
    if not colon:
        name, number = "absolute", text
    name = name.strip()
    try:
        value = float(number)
        rule = RULES[name]
    except (KeyError, ValueError):
        raise UserError(
            f"cannot read threshold {text!r}: write absolute:0.01 (or just 0.01), fraction_of_max:0.4 or quantile:0.25"
        ) from None
    return quantile(value, one_sided=one_sided) if rule is quantile else rule(value)


def _at(ordered: Float[Array, " n"], index: Array) -> Float[Array, ""]:
    # An index below 0 means that nothing is kept at this end.
    return jnp.where(index >= 0, ordered[jnp.maximum(index, 0)], jnp.asarray(-jnp.inf, ordered.dtype))
