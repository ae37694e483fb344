"""The form in which a training step holds a net: without the frozen signs where they are a gauge.

With frozen weights +c or -c, thresholds +-tau and a mask that is odd in the scores, put u = score * sign(weight).
Then mask * weight = c * g(u), and the gradient with respect to u, weight decay and momentum don't see the signs: the
step need not read the frozen weights at all.  Sign flips are exact in floating point, so that the scores are the
same, bit for bit, after flipping back (docs/ledger.md, "A symmetry worth knowing"; tests/training/test_gauge.py).

Matrices are held transposed, [out, in]: a CPU's matrix products run some 8 % faster so (docs/speed.md).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ssm.learners import Learner
from ssm.supermask import layer_thresholds
from ssm.trees import Path, Tree, flatten, unflatten


class StepForm(NamedTuple):
    """What a step works on: `frozen` and `params` as a Supermask takes them (after `as_stored`), and the signs."""

    frozen: Tree
    params: Tree
    signs: dict[Path, Array]  # int8, in the step's orientation; empty where the general path is used


def holds(learner: Learner, frozen: Tree) -> bool:
    """Say whether the signs of these concrete frozen kernels are a gauge: equal magnitudes, symmetric thresholds.

    `frozen` is one seed's collection.
    """
    if not learner.gauge:
        return False
    kernels = flatten(frozen["net"])
    for path, layer in layer_thresholds(frozen).items():
        magnitude = np.abs(np.asarray(kernels[path]))
        lower, upper = float(layer.lower), float(layer.upper)
        # At a threshold of 0 the mask of a score of 0 is +1, which is not odd.
        if not (magnitude == magnitude.flat[0]).all() or lower != -upper or upper <= 0:
            return False
    return True


def transpose(tree: Any) -> Any:
    """Turn every matrix of a tree between [in, out] and the step's [out, in]; everything else stays."""
    return jax.tree.map(lambda leaf: leaf.T if jnp.ndim(leaf) == 2 else leaf, tree)


def to_step(frozen: Tree, params: Tree, *, gauge: bool) -> StepForm:
    """Return one seed's variables in the form of the step; exact, and undone by `from_step`."""
    frozen, params = transpose(frozen), transpose(params)
    if not gauge:
        return StepForm(frozen, params, {})
    kernels = flatten(frozen["net"])
    signs = {path: jnp.where(kernels[path] < 0, -1, 1).astype(jnp.int8) for path in layer_thresholds(frozen)}
    constants = {path: jnp.abs(kernels[path]).ravel()[0] for path in signs}
    return StepForm(
        {**frozen, "net": unflatten(kernels | constants)},
        {**params, "net": flip(params["net"], signs)},
        signs,
    )


def flip(tree: Tree, signs: Mapping[Path, Array]) -> dict[str, Any]:
    """Return the tree with the leaves that have signs multiplied by them; its own inverse."""
    flat = flatten(tree)
    return unflatten(flat | {path: flat[path] * sign.astype(flat[path].dtype) for path, sign in signs.items()})


def from_step(form: StepForm) -> Tree:
    """Return the params of a step form as the user sees them: signs back in, matrices [in, out]."""
    return transpose({**form.params, "net": flip(form.params["net"], form.signs)})
